/* names: what the system's own objects are called, in one place: the parts find each other by them. */
#ifndef SILICA_UP_NAMES_H
#define SILICA_UP_NAMES_H

#include <signal.h>

#define UP_MANAGER       "silica-up"
#define UP_NAMESPACE     "agent-sandbox-system" /* where the system's own objects are */
#define EXTENSIONS_GROUP "extensions.agents.x-k8s.io"
#define RBAC_GROUP       "rbac.authorization.k8s.io"

/* Pods that stand for parts of the system: bound to a node of that name, which no node agent answers to. The label says
 * which part. */
#define UP_NODE       "silica-up"
#define UP_PART_LABEL "silica.dev/part"
#define UP_ROUTER     "sandbox-router"
#define UP_ROUTER_SVC "sandbox-router-svc" /* what the SDKs look for */
#define UP_CONTROLLER "agent-sandbox-controller"

/* In the data directory: where streams of Pods are asked for. */
#define NODE_SOCKET  "pods.sock"  /* of the node: all Pods but the system's own */
#define PARTS_SOCKET "parts.sock" /* of those */
/* Where the router takes what comes through its Pod, with a word on who is behind it. */
#define ROUTER_SOCKET "router.sock"

/* What became of the listener for Gateways: written by the supervisor (gate.h), read by control (gateway.h). */
#define UP_GATEWAY_FILE "gateway.json"
#define UP_SIGNAL_GATE  SIGUSR1   /* to control: that file is another */
#define UP_GATE_NET     "127.63." /* its addresses; Pods have 127.64.0.0/10 */

#endif
