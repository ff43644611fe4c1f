#include "up/accounts.h"

#include "base/log.h"
#include "base/str.h"
#include "ev/timer.h"
#include "isolate/dir.h"
#include "up/limits.h"
#include "up/names.h"
#include "up/given.h"

#include <stdio.h>
#include <string.h>

#define READ "\"get\",\"list\",\"watch\""
#define RULE(groups, resources, verbs)                                                             \
    "{\"apiGroups\":[" groups "],\"resources\":[" resources "],\"verbs\":[" verbs "]}"

/* clang-format off */
static const struct account_row {
    const char *part;
    const char *rules;
} rows[] = {
    { "node",
      RULE("\"\"", "\"pods\"", READ ",\"update\",\"patch\",\"delete\"") ","
      RULE("\"\"", "\"pods/status\"", "\"get\",\"update\",\"patch\"") ","
      RULE("\"\"", "\"serviceaccounts/token\"", "\"create\"") ","
      RULE("\"\"", "\"nodes\"", READ ",\"create\",\"update\",\"patch\"") ","
      RULE("\"\"", "\"nodes/status\"", "\"get\",\"update\",\"patch\"") ","
      RULE("\"\"", "\"secrets\",\"configmaps\",\"services\",\"namespaces\",\"persistentvolumes\",\"serviceaccounts\"", READ) ","
      RULE("\"\"", "\"persistentvolumeclaims\"", READ ",\"update\",\"patch\"") ","
      RULE("\"\"", "\"persistentvolumeclaims/status\"", "\"get\",\"update\",\"patch\"") ","
      RULE("\"\",\"events.k8s.io\"", "\"events\"", "\"create\",\"update\",\"patch\"") ","
      RULE("\"coordination.k8s.io\"", "\"leases\"", READ ",\"create\",\"update\",\"patch\"") },
    { "router",
      RULE("\"\"", "\"pods\"", READ) "," RULE("\"agents.x-k8s.io\"", "\"sandboxes\"", READ) ","
      /* for the page at its address */
      RULE("\"extensions.agents.x-k8s.io\"", "\"sandboxclaims\",\"sandboxwarmpools\"", "\"list\"") ","
      RULE("\"\"", "\"events\"", "\"list\"") ","
      RULE("\"authorization.k8s.io\"", "\"subjectaccessreviews\"", "\"create\"") },
};
/* clang-format on */

/* Of one row: account, role, binding, token, files. */
struct turn {
    struct accounts *accounts;
    const struct account_row *row;
    size_t waiting;
};

struct accounts {
    struct accounts_config config;
    struct ev_loop *loop;
    struct turn turns[LEN(rows)];
    size_t waiting; /* turns */
    struct ev_timer renewal;
    struct err e;
    bool has_failed, is_closed;
};

static void begin(void *ctx);

static void account_name(const struct turn *t, char name[64])
{
    (void)snprintf(name, 64, "silica-%s", t->row->part);
}

/* ---- ends ---- */

static void free_accounts(struct accounts *a)
{
    free((char *)a->config.address);
    free((uint8_t *)a->config.ca_pem.p);
    free(a);
}

static void finish(struct accounts *a)
{
    void (*done)(void *, const struct err *) = a->config.done;

    if (a->is_closed) {
        free_accounts(a);
        return;
    }
    ev_timer_start(a->loop, &a->renewal, a->has_failed ? TOKEN_RETRY_MS : TOKEN_RENEWAL_MS, begin,
                   a);
    if (a->has_failed)
        log_error("up.accounts", KV("err", &a->e));
    a->config.done = NULL;
    if (done)
        done(a->config.ctx, a->has_failed ? &a->e : NULL);
}

static void finish_turn(struct turn *t, const struct err *e)
{
    struct accounts *a = t->accounts;

    if (e && !a->has_failed) {
        a->has_failed = true;
        a->e = *e;
        (void)err_wrap(&a->e, "the account of the %s", t->row->part);
    }
    if (--a->waiting == 0)
        finish(a);
}

static void refuse_turn(struct turn *t, const struct status *refusal)
{
    struct err e;

    (void)err_set(&e, ERR_INTERNAL, "%s", buf_cstr(&refusal->message));
    finish_turn(t, &e);
}

/* ---- files ---- */

static int write_kubeconfig(const struct turn *t, struct err *e)
{
    const struct accounts_config *c = &t->accounts->config;
    OWN(buf_done) struct buf text = BUF_INIT(UP_FILE_MAX_BYTES);
    char file[64];

    (void)snprintf(file, sizeof file, "%s.kubeconfig", t->row->part);
    if (buf_addf(&text, e,
                 "apiVersion: v1\nkind: Config\nclusters:\n- name: silica\n  cluster:\n"
                 "    server: https://%s\n    certificate-authority-data: ",
                 c->address) < 0 ||
        str_base64_encode(c->ca_pem, &text, e) < 0 ||
        buf_addf(&text, e,
                 "\nusers:\n- name: silica-%s\n  user:\n    tokenFile: %s.token\n"
                 "contexts:\n- name: silica\n  context:\n    cluster: silica\n"
                 "    user: silica-%s\ncurrent-context: silica\n",
                 t->row->part, t->row->part, t->row->part) < 0)
        return -1;
    return dir_write(c->dir_fd, file, buf_span(&text), e);
}

static void on_token(void *ctx, const struct kube_answer *answer)
{
    struct turn *t = ctx;
    struct span token = json_str(json_get(json_get(answer->body, "status"), "token"));
    char file[64];
    struct err e;

    if (answer->refusal) {
        refuse_turn(t, answer->refusal);
        return;
    }
    (void)snprintf(file, sizeof file, "%s.token", t->row->part);
    if (dir_write(t->accounts->config.dir_fd, file, token, &e) < 0 || write_kubeconfig(t, &e) < 0)
        finish_turn(t, &e);
    else
        finish_turn(t, NULL);
}

/* ---- objects ---- */

static void ask_token(struct turn *t)
{
    char name[64], body[256];

    account_name(t, name);
    (void)snprintf(body, sizeof body,
                   "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\","
                   "\"spec\":{\"expirationSeconds\":%d}}",
                   TOKEN_LIFE_S);
    (void)kube_call_start(t->accounts->config.client,
                          &(struct kube_request){ .verb = KUBE_CREATE,
                                                  .kind = kind_find("", NULL, "serviceaccounts"),
                                                  .namespace = UP_NAMESPACE,
                                                  .name = name,
                                                  .sub = "token",
                                                  .body = span_cstr(body) },
                          on_token, t);
}

static void on_applied(void *ctx, const struct kube_answer *answer)
{
    struct turn *t = ctx;
    struct err e;

    if (answer->refusal && !t->accounts->has_failed) {
        (void)err_set(&e, ERR_INTERNAL, "%s", buf_cstr(&answer->refusal->message));
        t->accounts->e = e;
        t->accounts->has_failed = true;
    }
    if (--t->waiting > 0)
        return;
    if (t->accounts->has_failed)
        finish_turn(t, NULL);
    else
        ask_token(t);
}

static void apply(struct turn *t, const char *group, const char *plural, const char *name,
                  const char *text)
{
    bool is_account = strcmp(plural, "serviceaccounts") == 0;

    t->waiting++;
    given_apply(t->accounts->config.client,
                &(struct given){ group, plural, is_account ? UP_NAMESPACE : "", text }, name,
                on_applied, t);
}

static void begin_turn(struct turn *t)
{
    char account[64], role[64], text[GIVEN_TEXT_MAX_BYTES / 8];

    account_name(t, account);
    (void)snprintf(role, sizeof role, "silica:%s", t->row->part);
    (void)snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"%s\"}}", account);
    apply(t, "", "serviceaccounts", account, text);
    (void)snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"%s\"},\"rules\":[%s]}", role,
                   t->row->rules);
    apply(t, RBAC_GROUP, "clusterroles", role, text);
    (void)snprintf(text, sizeof text,
                   "{\"metadata\":{\"name\":\"%s\"},\"roleRef\":{\"apiGroup\":\"" RBAC_GROUP
                   "\",\"kind\":\"ClusterRole\",\"name\":\"%s\"},\"subjects\":[{\"kind\":"
                   "\"ServiceAccount\",\"name\":\"%s\",\"namespace\":\"" UP_NAMESPACE "\"}]}",
                   role, role, account);
    apply(t, RBAC_GROUP, "clusterrolebindings", role, text);
}

static void begin(void *ctx)
{
    struct accounts *a = ctx;

    a->has_failed = false;
    a->waiting = LEN(a->turns);
    for (size_t i = 0; i < LEN(a->turns); i++)
        begin_turn(&a->turns[i]);
}

struct accounts *accounts_open(const struct accounts_config *config)
{
    struct accounts *a = NEW(struct accounts);

    a->config = *config;
    a->config.address = own_strdup(config->address);
    a->config.ca_pem.p = (const uint8_t *)span_dup(config->ca_pem);
    a->loop = kube_client_loop(config->client);
    for (size_t i = 0; i < LEN(rows); i++)
        a->turns[i] = (struct turn){ .accounts = a, .row = &rows[i] };
    begin(a);
    return a;
}

void accounts_close(struct accounts *a)
{
    if (!a)
        return;
    ev_timer_stop(a->loop, &a->renewal);
    a->is_closed = true;
    if (a->waiting == 0)
        free_accounts(a);
}
