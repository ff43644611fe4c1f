{{- define "silica.namespace" -}}
{{ .Values.namespace.name }}
{{- end }}

{{- define "silica.image" -}}
{{ .image.repository }}:{{ .image.tag | default .chart.AppVersion }}
{{- end }}

{{- define "silica.routerLabels" -}}
app: sandbox-router
{{ include "silica.routerSelector" . }}
{{- end }}

{{- define "silica.routerSelector" -}}
app.kubernetes.io/name: sandbox-router
app.kubernetes.io/component: sandbox-router
{{- end }}

{{/* The flags of the controller. Numbers of YAML are floats here, and 1000000 must not become 1e+06. */}}
{{- define "silica.controllerArgs" -}}
- --leader-elect={{ .Values.controller.leaderElect }}
- {{ if .Values.controller.extensions }}--extensions{{ else }}--extensions=false{{ end }}
{{- $flags := dict
  "leaderElectionNamespace" "leader-election-namespace"
  "clusterDomain" "cluster-domain"
  "enableTracing" "enable-tracing"
  "enablePprof" "enable-pprof"
  "enablePprofDebug" "enable-pprof-debug"
  "pprofBlockProfileRate" "pprof-block-profile-rate"
  "pprofMutexProfileFraction" "pprof-mutex-profile-fraction"
  "kubeApiQps" "kube-api-qps"
  "kubeApiBurst" "kube-api-burst"
  "sandboxConcurrentWorkers" "sandbox-concurrent-workers"
  "sandboxClaimConcurrentWorkers" "sandbox-claim-concurrent-workers"
  "sandboxWarmPoolConcurrentWorkers" "sandbox-warm-pool-concurrent-workers"
  "sandboxTemplateConcurrentWorkers" "sandbox-template-concurrent-workers"
  "sandboxWarmPoolMaxBatchSize" "sandbox-warm-pool-max-batch-size"
  "sandboxWarmPoolReplenishDelay" "sandbox-warm-pool-replenish-delay"
  "sandboxWarmPoolMaxRefillRate" "sandbox-warm-pool-max-refill-rate"
  "sandboxWarmPoolReadinessGracePeriod" "sandbox-warm-pool-readiness-grace-period"
  "sandboxWarmPoolUnschedulableRecheckInterval" "sandbox-warm-pool-unschedulable-recheck-interval"
  "enableWarmPoolEviction" "enable-warm-pool-eviction"
  "enableWebhook" "enable-webhook" }}
{{- range $key := keys $flags | sortAlpha }}
{{- $value := index $.Values.controller $key }}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ $value = int64 $value }}{{ end }}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
- --{{ index $flags $key }}={{ $value }}
{{- end }}
{{- end }}
{{- if ne .Values.namespace.name "agent-sandbox-system" }}
- --webhook-namespace={{ .Values.namespace.name }}
{{- end }}
{{- if ne .Values.webhookServiceName "agent-sandbox-webhook-service" }}
- --webhook-service-name={{ .Values.webhookServiceName }}
{{- end }}
{{- range .Values.controller.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
