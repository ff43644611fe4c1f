/* Namespaces: what each has from its beginning, and its end, which takes along what is in it. */
#include "apiserver/collect_impl.h"

#include "apiserver/admit.h"
#include "apiserver/ending.h"
#include "apiserver/limits.h"
#include "apiserver/pki.h"
#include "base/log.h"

#include <string.h>

#define NAMESPACE_FINALIZER "kubernetes"
#define ACCOUNT             "default"
#define ROOT_CA             "kube-root-ca.crt"

/* What is left in it; when that is nothing, we hold it no more. */
static bool end_namespace(struct json_edit *ed, struct json_node *root, const void *left)
{
    const struct ending *ending = left;
    struct json_node *list = json_node_get(json_node_get(root, "spec"), "finalizers");
    char now[TIME_TEXT_BYTES];
    bool is_changed = ending_write(ending, root, admit_now(now));

    (void)ed;
    for (size_t i = json_node_count(list); !ending->kind_count && i-- > 0;) {
        if (span_is(json_node_str(json_node_at(list, i)), NAMESPACE_FINALIZER)) {
            json_node_remove_at(list, i);
            is_changed = true;
        }
    }
    return is_changed;
}

static void put(struct collect *c, const char *plural, const char *namespace, const char *text)
{
    OWN(status_done) struct status st = STATUS_INIT;

    if (op_create_given(c->s->store, kind_find("", "v1", plural), namespace, text, &st) < 0 &&
        st.code != 409)
        log_warn("collect.furnish", KV("namespace", namespace), KV("kind", plural),
                 KV("why", buf_cstr(&st.message)));
}

bool collect_is_furniture(const struct object *o)
{
    const struct kind *k = object_kind(o);

    return !*k->group &&
           ((strcmp(object_name(o), ACCOUNT) == 0 && strcmp(k->name, "ServiceAccount") == 0) ||
            (strcmp(object_name(o), ROOT_CA) == 0 && strcmp(k->name, "ConfigMap") == 0));
}

/* What every namespace has: an account for what runs in it, and the certificate of this server. */
static void furnish(struct collect *c, const char *namespace)
{
    OWN(buf_done) struct buf text = BUF_INIT(PKI_PEM_MAX_BYTES * 2);
    struct json_out o;
    struct shelf_key key = { op_number(kind_find("", "v1", "serviceaccounts")), namespace,
                             ACCOUNT };
    struct err e;

    if (!store_get(c->s->store, STORE_HEAD, &key))
        put(c, "serviceaccounts", namespace, "{\"metadata\":{\"name\":\"" ACCOUNT "\"}}");
    key = (struct shelf_key){ op_number(kind_find("", "v1", "configmaps")), namespace, ROOT_CA };
    if (store_get(c->s->store, STORE_HEAD, &key))
        return;
    json_out_init(&o, &text, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "metadata"), json_out_object_begin(&o);
    json_out_key(&o, "name"), json_out_cstr(&o, ROOT_CA);
    json_out_key(&o, "annotations"), json_out_object_begin(&o);
    json_out_key(&o, "kubernetes.io/description");
    json_out_cstr(
        &o,
        "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
        "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
        "guaranteed across distributions of Kubernetes clusters.");
    json_out_object_end(&o);
    json_out_object_end(&o);
    json_out_key(&o, "data"), json_out_object_begin(&o);
    json_out_key(&o, "ca.crt"), json_out_str(&o, pki_ca_pem(c->s->pki));
    json_out_object_end(&o);
    json_out_object_end(&o);
    if (json_out_end(&o, &e) == 0)
        put(c, "configmaps", namespace, buf_cstr(&text));
}

/* Deletes what is in a namespace that ends, some of it in one turn; *left is what stays for now. False: there is more. */
static bool empty(struct collect *c, const char *namespace, struct ending *left)
{
    struct shelf *shelf = store_snapshot(c->s->store, STORE_HEAD, NULL);
    size_t budget = COLLECT_SLICE;

    for (unsigned k = 0; k < c->kind_count && budget > 0; k++) {
        struct shelf_key from = { k, namespace, "" };
        struct shelf_walk walk;
        struct object *o;
        unsigned kind;

        if (!kind_is_namespaced(&c->kinds[k]))
            continue;
        shelf_walk_init(&walk, shelf, &from, false);
        while (budget > 0 && (o = shelf_walk_next(&walk, &kind)) && kind == k &&
               strcmp(object_namespace(o), namespace) == 0) {
            struct shelf_key key = { k, namespace, object_name(o) };

            if (!object_is_deleting(o)) {
                collect_delete(c, k, o, OP_BACKGROUND);
                budget--;
            }
            o = store_get(c->s->store, STORE_HEAD, &key);
            if (o)
                ending_add(left, &c->kinds[k], o);
        }
    }
    shelf_unref(shelf);
    return budget > 0;
}

void collect_namespace(struct collect *c, struct object *o)
{
    OWN(object_done) struct object *held = object_ref(o);
    OWN(ending_done) struct ending left = { .kind_count = 0 };

    if (!object_is_deleting(held))
        furnish(c, object_name(held));
    else if (empty(c, object_name(held), &left))
        collect_change(c, c->namespaces, held, end_namespace, &left);
    else
        collect_look_at(c, c->namespaces, held);
}
