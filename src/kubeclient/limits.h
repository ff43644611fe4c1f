/* The numbers of this room, each with what happens there. */
#ifndef SILICA_KUBECLIENT_LIMITS_H
#define SILICA_KUBECLIENT_LIMITS_H

/* A kubeconfig, then it is refused. A hundred clusters with their certificates have 1 MB. */
#define KUBECONFIG_MAX_BYTES (4 << 20)
/* Files in KUBECONFIG, then they are refused. */
#define KUBECONFIG_FILES_MAX 32
/* A token in a file, then it is refused; the API server takes heads of 1 MiB. */
#define TOKEN_MAX_BYTES (64 * 1024)
/* Files that others rotate (tokens, certificates) are looked at again after so long. The kubelet renews tokens minutes
 * before they end. */
#define FILES_LOOK_MS 5000
/* What a credential plugin may write, then it failed. */
#define PLUGIN_OUTPUT_MAX_BYTES (1 << 20)
#define PLUGIN_WORDS_MAX        256 /* its arguments, and the variables it is given; then it is refused */
/* Then it is killed. Some open a browser and wait for a person. */
#define PLUGIN_TIMEOUT_MS (5 * 60 * 1000)
/* A credential is renewed a tenth of its life before it ends, at most so long before. */
#define PLUGIN_EARLY_MAX_MS 10000
/* A failed plugin is not started again before this, whoever asks: login services dislike a thousand tries. */
#define PLUGIN_PAUSE_MS 2000

/* One object on the wire, then the call fails, and a watch ends. etcd takes 1.5 MiB; managedFields and custom servers
 * take their part. */
#define REST_OBJECT_MAX_BYTES (8 << 20)
/* A request's target, then the call fails: selectors and continue tokens are long. */
#define REST_TARGET_MAX_BYTES (64 * 1024)
/* The head of a request, with its token. */
#define REST_HEAD_MAX_BYTES (256 * 1024)
/* Objects of one list that is asked for as a whole, then it fails. Ten times what a cluster may hold of one kind. */
#define REST_LIST_MAX_ITEMS 2000000
/* And their bytes together, then the same: a server that never ends must not take all memory. */
#define REST_LIST_MAX_BYTES (4ull << 30)
/* Asked for at a time behind the scenes: a page is written by the server while others wait. */
#define REST_PAGE_ITEMS 500
/* A list that became too old between two pages is begun anew so often, then 410 is the caller's. */
#define REST_LIST_RESTARTS 3
/* One call with all its tries, unless the client's config says otherwise. */
#define REST_TIMEOUT_MS 60000
/* Tries of one call, then its last failure stands. */
#define REST_TRIES_MAX 10
/* The first pause between tries; doubled each time, and up to as much again by chance. */
#define REST_PAUSE_FIRST_MS 50
#define REST_PAUSE_MAX_MS   2500
/* Retry-After beyond this is cut to it: the server's clock may be wrong, and a minute's load has passed. */
#define REST_RETRY_AFTER_MAX_S 60
/* A connection is tried for so long. */
#define REST_CONNECT_MS 10000
/* A silent connection with calls on it is asked after so long whether it lives, and has so long to answer. client-go's. */
#define REST_PING_IDLE_MS 30000
#define REST_PING_WAIT_MS 15000

/* The server ends a watch after so many seconds, and up to as many again by chance, so that watches spread over the
 * servers of a cluster; as client-go has it. */
#define WATCH_SECONDS 300
/* Pauses between connections of a watch that fails at once; the same. */
#define WATCH_PAUSE_FIRST_MS 100
#define WATCH_PAUSE_MAX_MS   15000
/* A watch that lived so long was a good one: its end is no failure, and the next pause begins small again. */
#define WATCH_GOOD_MS 5000
/* HTTP/1.1 has no ping: a watch without a word for so long is made again. Bookmarks come each minute. */
#define WATCH_SILENT_MS (4 * 60 * 1000)

#endif
