/* keys: the labels, annotations, condition types and reasons that the controllers and their clients agree on.
 *
 * Owns:     nothing. Every text here is part of the contract: SDKs, the router and kubectl's users read them.
 */
#ifndef SILICA_CONTROLLER_KEYS_H
#define SILICA_CONTROLLER_KEYS_H

#define GROUP_SANDBOX    "agents.x-k8s.io"
#define GROUP_EXTENSIONS "extensions.agents.x-k8s.io"

/* Labels. The first finds what belongs to a sandbox; it is an index only, the owner's uid decides. */
#define LABEL_TRACKING      "agents.x-k8s.io/sandbox-name-hash"
#define LABEL_ADOPTABLE     "agents.x-k8s.io/adoptable"
#define LABEL_POOL          "agents.x-k8s.io/warm-pool-sandbox"
#define LABEL_TEMPLATE_REF  "agents.x-k8s.io/sandbox-template-ref-hash"
#define LABEL_TEMPLATE_HASH "agents.x-k8s.io/sandbox-template-hash"
#define LABEL_POD_HASH      "agents.x-k8s.io/sandbox-pod-template-hash"
#define LABEL_LAUNCH        "agents.x-k8s.io/launch-type"
#define LABEL_CREATED_BY    "agents.x-k8s.io/created-by"
#define LABEL_CLAIM_UID     "agents.x-k8s.io/claim-uid"

/* Annotations. The claim's sandbox-name is the lock of an adoption; it was a label once. */
#define NOTE_POD_NAME         "agents.x-k8s.io/pod-name"
#define NOTE_TEMPLATE_REF     "agents.x-k8s.io/sandbox-template-ref"
#define NOTE_SENT_LABELS      "agents.x-k8s.io/propagated-labels"
#define NOTE_SENT_ANNOTATIONS "agents.x-k8s.io/propagated-annotations"
#define NOTE_SANDBOX_NAME     "agents.x-k8s.io/sandbox-name"
#define NOTE_FIRST_SEEN       "agents.x-k8s.io/controller-first-observed-at"
#define NOTE_WEBHOOK_SEEN     "agents.x-k8s.io/webhook-first-observed-at"
#define NOTE_CLIENT_ASKED     "agents.x-k8s.io/client-first-requested-at"
#define NOTE_FIRST_READY      "agents.x-k8s.io/claim-first-ready-at"
#define NOTE_POD_ADDRESSES                                                                         \
    "silica.dev/pod-addresses" /* "true": ports are listened on at the Pod's address */
#define NOTE_TRACE         "opentelemetry.io/trace-context"
#define NOTE_SAFE_TO_EVICT "cluster-autoscaler.kubernetes.io/safe-to-evict"

#define LAUNCH_WARM "warm"
#define LAUNCH_COLD "cold"

/* Condition types. */
#define COND_READY         "Ready"
#define COND_SUSPENDED     "Suspended"
#define COND_FINISHED      "Finished"
#define COND_POD_SCHEDULED "PodScheduled"
/* Of a Pod of our own node whose address is asked for, and its reason as long as the Pod waits in a pool. */
#define COND_POD_ADDRESSES "silica.dev/PodAddresses"
#define REASON_UNCLAIMED   "NotClaimed"
#define REASON_STRANGERS   "PortTakenByOthers" /* another account's program would be reached there */

/* Reasons of the Sandbox's Ready. The SDKs take the last three as final: only for what cannot heal by itself. */
#define REASON_READY      "DependenciesReady"
#define REASON_NOT_READY  "DependenciesNotReady"
#define REASON_SUSPENDED  "SandboxSuspended"
#define REASON_MANY_PODS  "MultiplePods"
#define REASON_ERROR      "ReconcilerError"
#define REASON_EXPIRED    "SandboxExpired"
#define REASON_INVALID    "InvalidConfiguration"
#define REASON_POD_OK     "PodSucceeded"
#define REASON_POD_FAILED "PodFailed"

#define SANDBOX_MANAGER "sandbox-controller"

#endif
