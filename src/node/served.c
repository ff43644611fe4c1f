#include "node/served.h"

#include "base/buf.h"

#include <string.h>

#define DEPTH_MAX 12 /* of objects in a Pod: the deepest member that is noted is at 4 */

/* ---- the table ---- */

/* Names with spaces between. */
struct row {
    const char *type;
    const char *served, *moot, *elsewhere;
};

/* clang-format off */
static const struct row rows[] = {
    { "PodSpec",
      "volumes initContainers containers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds serviceAccountName "
      "serviceAccount automountServiceAccountToken nodeName securityContext hostname schedulerName readinessGates "
      "enableServiceLinks os schedulingGates",
      /* No image is pulled, no other node is there to be chosen, nobody makes room for another, and nothing leaves a sandbox, so
       * there is no server to be asked for a name: every sandbox of a template with the default policy names some. */
      "imagePullSecrets tolerations priorityClassName priority preemptionPolicy overhead topologySpreadConstraints dnsPolicy dnsConfig",
      "" },
    { "PodOS", "", "", "" },
    { "PodReadinessGate", "conditionType", "", "" },
    { "PodSchedulingGate", "name", "", "" },
    { "PodSecurityContext",
      "runAsUser runAsGroup runAsNonRoot supplementalGroups fsGroup seccompProfile appArmorProfile",
      "supplementalGroupsPolicy fsGroupChangePolicy", "" }, /* no image has groups; a volume's own directory decides */
    { "SeccompProfile", "", "", "" },
    { "AppArmorProfile", "", "", "" },
    { "Volume", "name emptyDir secret persistentVolumeClaim downwardAPI configMap projected", "",
      "hostPath gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs rbd flexVolume cinder cephfs flocker fc azureFile "
      "vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos csi ephemeral image" },
    { "EmptyDirVolumeSource", "sizeLimit medium", "", "" },
    { "SecretVolumeSource", "secretName items defaultMode optional", "", "" },
    { "KeyToPath", "key path mode", "", "" },
    { "PersistentVolumeClaimVolumeSource", "claimName readOnly", "", "" },
    { "DownwardAPIVolumeSource", "items defaultMode", "", "" },
    { "DownwardAPIVolumeFile", "path fieldRef resourceFieldRef mode", "", "" },
    { "ObjectFieldSelector", "apiVersion fieldPath", "", "" },
    { "ResourceFieldSelector", "containerName resource divisor", "", "" },
    { "ConfigMapVolumeSource", "name items defaultMode optional", "", "" },
    { "ProjectedVolumeSource", "sources defaultMode", "", "" },
    { "VolumeProjection", "secret downwardAPI configMap serviceAccountToken", "", "clusterTrustBundle podCertificate" },
    { "SecretProjection", "name items optional", "", "" },
    { "DownwardAPIProjection", "items", "", "" },
    { "ConfigMapProjection", "name items optional", "", "" },
    { "ServiceAccountTokenProjection", "audience expirationSeconds path", "", "" },
    { "Container",
      "name image command args workingDir ports envFrom env resources volumeMounts livenessProbe readinessProbe startupProbe lifecycle "
      "imagePullPolicy securityContext terminationMessagePath terminationMessagePolicy",
      "", "volumeDevices restartPolicy" }, /* of init containers: Always; the API refuses others */
    { "ContainerPort", "name containerPort", "", "" },
    { "EnvFromSource", "prefix configMapRef secretRef", "", "" },
    { "ConfigMapEnvSource", "name optional", "", "" },
    { "SecretEnvSource", "name optional", "", "" },
    { "EnvVar", "name value valueFrom", "", "" },
    { "EnvVarSource", "fieldRef resourceFieldRef configMapKeyRef secretKeyRef", "", "fileKeyRef" },
    { "ConfigMapKeySelector", "name key optional", "", "" },
    { "SecretKeySelector", "name key optional", "", "" },
    { "ResourceRequirements", "limits requests", "", "" },
    { "VolumeMount", "name readOnly mountPath subPath subPathExpr", "recursiveReadOnly", "mountPropagation" }, /* nothing is mounted below */
    { "Probe",
      "exec httpGet tcpSocket grpc initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold "
      "terminationGracePeriodSeconds", "", "" },
    { "ExecAction", "command", "", "" },
    { "HTTPGetAction", "path port scheme httpHeaders", "", "" },
    { "HTTPHeader", "name value", "", "" },
    { "TCPSocketAction", "port", "", "" },
    { "GRPCAction", "port service", "", "" },
    { "Lifecycle", "postStart preStop", "", "" },
    { "LifecycleHandler", "exec httpGet tcpSocket sleep", "", "" },
    { "SleepAction", "seconds", "", "" },
    { "SecurityContext", "capabilities runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem seccompProfile appArmorProfile", "", "" },
    { "Capabilities", "drop", "", "" },
};

enum when { IF_SET, IF_TRUE, IF_WORD, IF_OTHER };

struct unserved {
    const char *type, *field;
    enum when when;
    const char *word; /* of IF_WORD: that is asked for in vain; of IF_OTHER: the only one that is not */
};

static const struct unserved unserved[] = {
    { "PodSpec", "ephemeralContainers" },
    { "PodSpec", "nodeSelector" },
    { "PodSpec", "hostNetwork", IF_TRUE },
    { "PodSpec", "hostPID", IF_TRUE },
    { "PodSpec", "hostIPC", IF_TRUE },
    { "PodSpec", "shareProcessNamespace", IF_TRUE },
    { "PodSpec", "subdomain" },
    { "PodSpec", "affinity" },
    { "PodSpec", "hostAliases" },
    { "PodSpec", "runtimeClassName" },
    { "PodSpec", "setHostnameAsFQDN", IF_TRUE },
    { "PodSpec", "hostUsers", IF_TRUE },
    { "PodSpec", "resourceClaims" },
    { "PodSpec", "resources" },
    { "PodSpec", "hostnameOverride" },
    { "PodSpec", "schedulingGroup" },
    { "PodOS", "name", IF_OTHER, "linux" },
    { "PodSecurityContext", "sysctls" },
    { "PodSecurityContext", "seLinuxOptions" },
    { "PodSecurityContext", "windowsOptions" },
    { "PodSecurityContext", "seLinuxChangePolicy" },
    { "SeccompProfile", "type", IF_WORD, "Unconfined" },
    { "SeccompProfile", "type", IF_WORD, "Localhost" },
    { "SeccompProfile", "localhostProfile" },
    { "AppArmorProfile", "type", IF_WORD, "Localhost" },
    { "AppArmorProfile", "localhostProfile" },
    { "Container", "resizePolicy" },
    { "Container", "restartPolicyRules" },
    { "Container", "stdin", IF_TRUE },
    { "Container", "stdinOnce", IF_TRUE },
    { "Container", "tty", IF_TRUE },
    { "ContainerPort", "hostPort" },
    { "ContainerPort", "hostIP" },
    { "ContainerPort", "protocol", IF_OTHER, "TCP" },
    { "ResourceRequirements", "claims" },
    { "HTTPGetAction", "host" },
    { "TCPSocketAction", "host" },
    { "Lifecycle", "stopSignal" },
    { "SecurityContext", "privileged", IF_TRUE },
    { "SecurityContext", "allowPrivilegeEscalation", IF_TRUE },
    { "SecurityContext", "procMount", IF_WORD, "Unmasked" },
    { "SecurityContext", "seLinuxOptions" },
    { "SecurityContext", "windowsOptions" },
    { "Capabilities", "add" },
};
/* clang-format on */

/* ---- what the table says ---- */

static bool has_word(const char *words, const char *word)
{
    struct span rest = span_cstr(words), one;

    while (span_cut(&rest, ' ', &one))
        if (span_is(one, word))
            return true;
    return false;
}

static bool is_core(const struct schema_type *type)
{
    return strcmp(type->package, "core/v1") == 0;
}

enum served served_judge(const struct schema_type *type, const struct schema_field *field)
{
    enum served found = SERVED_UNSAID;

    EACH(u, unserved) {
        if (is_core(type) && strcmp(u->type, type->name) == 0 && strcmp(u->field, field->name) == 0)
            found = SERVED_NOTED;
    }
    EACH(r, rows) {
        if (!is_core(type) || strcmp(r->type, type->name) != 0)
            continue;
        if (has_word(r->served, field->name))
            return found ? SERVED_UNSAID : SERVED_YES; /* twice is as wrong as never */
        if (has_word(r->moot, field->name))
            return found ? SERVED_UNSAID : SERVED_MOOT;
        if (has_word(r->elsewhere, field->name))
            return found ? SERVED_UNSAID : SERVED_ELSEWHERE;
    }
    return found;
}

/* ---- what a Pod says ---- */

static bool is_set(const struct json *v)
{
    bool is_true = false;

    switch (json_type(v)) {
    case JSON_NONE:
    case JSON_NULL:
        return false;
    case JSON_BOOL:
        return json_bool(v, &is_true) && is_true;
    case JSON_NUMBER:
        return !span_is(json_number(v), "0");
    case JSON_STRING:
        return json_str(v).n > 0;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return json_count(v) > 0;
    }
    return false;
}

static bool is_asked_for(const struct unserved *u, const struct json *v)
{
    switch (u->when) {
    case IF_SET:
    case IF_TRUE:
        return is_set(v);
    case IF_WORD:
        return span_is(json_str(v), u->word);
    case IF_OTHER:
        return json_str(v).n && !span_is(json_str(v), u->word);
    }
    return false;
}

struct walk {
    struct buf *names; /* what was found: "a.b, a.c WORD" */
    const char *path[DEPTH_MAX];
    size_t depth;
    bool skips_containers; /* they are walked by themselves */
};

static void add_name(struct walk *w, const char *field, struct span word)
{
    OWN(buf_done) struct buf name = BUF_INIT(256);
    struct span all = buf_span(w->names), one;

    for (size_t i = 0; i < w->depth; i++) {
        (void)buf_add_capped(&name, span_cstr(w->path[i]));
        (void)buf_add_capped(&name, SPAN("."));
    }
    (void)buf_add_capped(&name, span_cstr(field));
    if (word.n)
        (void)buf_add_capped(&name, SPAN(" "));
    (void)buf_add_capped(&name, word);
    while (span_cut(&all, ',', &one))
        if (span_eq(one.n && one.p[0] == ' ' ? span_skip(one, 1) : one, buf_span(&name)))
            return; /* each port says it */
    if (w->names->n)
        (void)buf_add_capped(w->names, SPAN(", "));
    (void)buf_add_capped(w->names, buf_span(&name));
}

static void look_at(struct walk *w, const struct schema_type *type, const char *field,
                    const struct json *v)
{
    EACH(u, unserved) {
        if (strcmp(u->field, field) != 0 || strcmp(u->type, type->name) != 0 || !is_asked_for(u, v))
            continue;
        add_name(w, field, u->when == IF_WORD || u->when == IF_OTHER ? json_str(v) : SPAN(""));
    }
}

static void walk_object(struct walk *w, const struct schema_type *type, const struct json *o);

static void walk_field(struct walk *w, const struct schema_field *f, const struct json *v)
{
    if (f->value != SCHEMA_OBJECT || !f->ref || !is_core(f->ref) || w->depth == DEPTH_MAX)
        return;
    if (w->skips_containers && w->depth == 0 && strstr(f->name, "ontainers"))
        return;
    w->path[w->depth++] = f->name;
    if (f->shape == SCHEMA_SINGLE) {
        walk_object(w, f->ref, v);
    } else if (f->shape == SCHEMA_LIST && json_type(v) == JSON_ARRAY) {
        JSON_EACH(item, v)
        walk_object(w, f->ref, item);
    }
    w->depth--;
}

static void walk_object(struct walk *w, const struct schema_type *type, const struct json *o)
{
    if (json_type(o) != JSON_OBJECT)
        return;
    JSON_MEMBERS(key, value, o)
    {
        const struct schema_field *f = schema_field(type, json_str(key));

        if (!f)
            continue;
        look_at(w, type, f->name, value);
        walk_field(w, f, value);
    }
}

static void note_containers(const struct json *list, struct notes *notes)
{
    const struct schema_type *type = schema_type("core/v1", "Container");

    JSON_EACH(container, list)
    {
        OWN(buf_done) struct buf names = BUF_INIT(512);
        struct walk w = { .names = &names };

        walk_object(&w, type, container);
        if (names.n)
            notes_add(notes, "FieldNotServed",
                      "container \"%.*s\": not served here, and left out: %s",
                      SPAN_ARG(json_str(json_get(container, "name"))), buf_cstr(&names));
    }
}

void served_note(const struct object *pod, struct notes *notes)
{
    OWN(buf_done) struct buf names = BUF_INIT(512);
    struct walk w = { .names = &names, .skips_containers = true };

    walk_object(&w, schema_type("core/v1", "PodSpec"), object_member(pod, "spec"));
    if (names.n)
        notes_add(notes, "FieldNotServed", "not served here, and left out: %s", buf_cstr(&names));
    note_containers(object_at(pod, "spec.initContainers"), notes);
    note_containers(object_at(pod, "spec.containers"), notes);
}
