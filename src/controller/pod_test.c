#include "controller/pod.h"

#include "controller/keys.h"
#include "controller/testobject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* NameHash("s") */
#define HASH "f60c4582"
#define REF                                                                                        \
    "{'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Sandbox','name':'s','uid':'u1',"              \
    "'controller':true,'blockOwnerDeletion':true}"
#define STRANGER                                                                                   \
    "{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'rs','uid':'r9','controller':true}"
#define POOL                                                                                       \
    "'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1alpha1','kind':"               \
    "'SandboxWarmPool','name':'p','uid':'p1','controller':true}]"
#define CLAIM                                                                                      \
    "'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"                \
    "'SandboxClaim','name':'p','uid':'p1','controller':true}]"
#define TRACK       "'agents.x-k8s.io/sandbox-name-hash':'" HASH "'"
#define NOTED(name) "'annotations':{'agents.x-k8s.io/pod-name':'" name "'}"
#define OWN_POD                                                                                    \
    "{'metadata':{'namespace':'n','name':'s','labels':{" TRACK "},'ownerReferences':[" REF "]}}"
#define A "agents.x-k8s.io/"

static const struct row {
    const char *name;
    const char *meta; /* of the sandbox, beside its name */
    const char *spec; /* of the sandbox; NULL: one container */
    const char *pods[3];
    int named;        /* which of them has the looked-up name; -1: none */
    const char *step; /* what is to be done */
    const char *note; /* NULL: stays */
    const char *fault;
} rows[] = {
    { "creates a new pod",
      NULL,
      NULL,
      { NULL },
      -1,
      "create Pod n/s {'metadata':{'name':'s','namespace':'n','labels':{" TRACK
      "},'ownerReferences':[" REF "]},'spec':{'containers':[{'name':'c'}]}}",
      "s",
      NULL },
    { "drops reserved labels and annotations of the template",
      NULL,
      "{'podTemplate':{'metadata':{'labels':{'b':'2','a':'1','" A "claim-uid':'x'},'annotations':{"
      "'z':'26','opentelemetry.io/trace-context':'t'}},'spec':{}}}",
      { NULL },
      -1,
      "create Pod n/s {'metadata':{'name':'s','namespace':'n','labels':{'b':'2','a':'1'," TRACK
      "},'annotations':{'z':'26','" A "propagated-labels':'a,b','" A
      "propagated-annotations':'z'},'ownerReferences':[" REF "]},'spec':{}}",
      "s",
      NULL },
    { "volumes of claims replace those of their name and come last",
      NULL,
      "{'podTemplate':{'spec':{'volumes':[{'name':'data','emptyDir':{}},{'name':'tmp','emptyDir':{"
      "}}]}},'volumeClaimTemplates':[{'metadata':{'name':'data'},'spec':{}}]}",
      { NULL },
      -1,
      "create Pod n/s {'metadata':{'name':'s','namespace':'n','labels':{" TRACK
      "},'ownerReferences':[" REF "]},'spec':{'volumes':[{'name':'tmp','emptyDir':{}},{'name':"
      "'data','persistentVolumeClaim':{'claimName':'data-s'}}]}}",
      "s",
      NULL },
    { "reserved labels of the sandbox are not copied",
      "'labels':{'" A "sandbox-template-ref-hash':'h','" A "warm-pool-sandbox':'p','" A
      "claim-uid':'c'}",
      NULL,
      { NULL },
      -1,
      "create Pod n/s {'metadata':{'name':'s','namespace':'n','labels':{" TRACK
      "},'ownerReferences':[" REF "]},'spec':{'containers':[{'name':'c'}]}}",
      "s",
      NULL },
    { "labels of pool and template are copied when a pool owns it",
      POOL ",'labels':{'" A "sandbox-template-ref-hash':'h','" A "warm-pool-sandbox':'p','" A
           "created-by':'controller'}",
      NULL,
      { NULL },
      -1,
      "create Pod n/s {'metadata':{'name':'s','namespace':'n','labels':{" TRACK ",'" A
      "sandbox-template-ref-hash':'h','" A "warm-pool-sandbox':'p','" A
      "created-by':'controller'},'ownerReferences':[" REF
      "]},'spec':{'containers':[{'name':'c'}]}}",
      "s",
      NULL },
    { "an owned pod that says all needs nothing",
      NOTED("s"),
      NULL,
      { OWN_POD },
      0,
      "",
      NULL,
      NULL },
    { "the annotation is set when it is not there", NULL, NULL, { OWN_POD }, 0, "", "s", NULL },
    { "adopts and labels an existing adoptable pod",
      NULL,
      NULL,
      { "{'metadata':{'namespace':'n','name':'s','resourceVersion':'7','labels':{'" A
        "adoptable':'true','x':'y'},'ownerReferences':[{'kind':'ConfigMap','uid':'c'}]}}" },
      0,
      "patch Pod n/s {'metadata':{'resourceVersion':'7','ownerReferences':[{'kind':'ConfigMap',"
      "'uid':'c'}," REF "],'labels':{" TRACK "}}}",
      "s",
      NULL },
    { "adopts by tracking label and persists the owner",
      NULL,
      NULL,
      { "{'metadata':{'namespace':'n','name':'s','resourceVersion':'7','labels':{" TRACK "}}}" },
      0,
      "patch Pod n/s {'metadata':{'resourceVersion':'7','ownerReferences':[" REF "]}}",
      "s",
      NULL },
    { "adopts the pod named by the annotation",
      NOTED("other"),
      NULL,
      { "{'metadata':{'namespace':'n','name':'other','resourceVersion':'7','labels':{" TRACK
        "}}}" },
      0,
      "patch Pod n/other {'metadata':{'resourceVersion':'7','ownerReferences':[" REF "]}}",
      NULL,
      NULL },
    { "refuses an unowned pod without authorisation",
      NULL,
      NULL,
      { "{'metadata':{'namespace':'n','name':'s'}}" },
      0,
      "",
      NULL,
      "pod \"s\" exists, is not owned by sandbox \"s\", and is not labelled "
      "agents.x-k8s.io/adoptable=true: it is not adopted" },
    { "refuses a foreign pod and clears the annotation",
      NOTED("other"),
      NULL,
      { "{'metadata':{'namespace':'n','name':'other','ownerReferences':[" STRANGER "]}}" },
      0,
      "",
      "",
      "pod \"other\" is owned by ReplicaSet/rs (UID: r9), not by sandbox \"s\"" },
    { "recovers the owned pod when the tracked one is missing",
      NOTED("gone"),
      NULL,
      { OWN_POD },
      -1,
      "",
      "s",
      NULL },
    { "prefers its own pod over a stale adoption target",
      NOTED("other"),
      NULL,
      { "{'metadata':{'namespace':'n','name':'other','labels':{" TRACK "}}}", OWN_POD },
      0,
      "",
      "s",
      NULL },
    { "fails closed for several owned pods",
      NULL,
      NULL,
      { OWN_POD, "{'metadata':{'namespace':'n','name':'s2','labels':{" TRACK
                 "},'ownerReferences':[" REF "]}}" },
      0,
      "",
      NULL,
      "multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod" },
    { "an earlier life's pod is not its own",
      NULL,
      NULL,
      { "{'metadata':{'namespace':'n','name':'s2','labels':{" TRACK "},'ownerReferences':[{'kind':"
        "'Sandbox','uid':'u0','controller':true}]}}",
        OWN_POD },
      1,
      "",
      "s",
      NULL },
    { "waits for its terminating pod",
      NOTED("s"),
      NULL,
      { "{'metadata':{'namespace':'n','name':'s','deletionTimestamp':'x','ownerReferences':[" REF
        "]}}" },
      0,
      "",
      NULL,
      NULL },
    { "removes keys dropped from the template, keeps others'",
      NOTED("s"),
      "{'podTemplate':{'metadata':{'labels':{'keep':'2'}},'spec':{}}}",
      { "{'metadata':{'namespace':'n','name':'s','labels':{" TRACK
        ",'keep':'1','gone':'1','third':'1'},'annotations':{'was':'1','mine':'1','" A
        "propagated-labels':'gone,keep','" A
        "propagated-annotations':'was'},'ownerReferences':[" REF "]}}" },
      0,
      "patch Pod n/s {'metadata':{'labels':{'keep':'2','gone':null},'annotations':{'was':null,'" A
      "propagated-labels':'keep','" A "propagated-annotations':''}}}",
      NULL,
      NULL },
    { "scrubs reserved keys that an older controller recorded",
      NOTED("s"),
      NULL,
      { "{'metadata':{'namespace':'n','name':'s','labels':{" TRACK ",'" A "claim-uid':'x'},"
        "'annotations':{'" A "propagated-labels':'" A "claim-uid," A
        "sandbox-name-hash'},'ownerReferences':[" REF "]}}" },
      0,
      "patch Pod n/s {'metadata':{'labels':{'" A "claim-uid':null},'annotations':{'" A
      "propagated-labels':''}}}",
      NULL,
      NULL },
    { "the pool's label goes when a claim owns it",
      NOTED("s"),
      NULL,
      { "{'metadata':{'namespace':'n','name':'s','labels':{" TRACK ",'" A
        "warm-pool-sandbox':'p','" A "created-by':'x'},'ownerReferences':[" REF "]}}" },
      0,
      "patch Pod n/s {'metadata':{'labels':{'" A "warm-pool-sandbox':null,'" A
      "created-by':null}}}",
      NULL,
      NULL },
    { "labels of pool and template come to an existing pod",
      POOL "," NOTED("s") ",'labels':{'" A "sandbox-template-ref-hash':'h','" A
                          "warm-pool-sandbox':'p','" A "created-by':'me'}",
      NULL,
      { OWN_POD },
      0,
      "patch Pod n/s {'metadata':{'labels':{'" A "sandbox-template-ref-hash':'h','" A
      "warm-pool-sandbox':'p','" A "created-by':'unknown'}}}",
      NULL,
      NULL },
    { "the template's label stays under a claim, the pool's does not",
      CLAIM "," NOTED("s") ",'labels':{'" A "sandbox-template-ref-hash':'h','" A
                           "warm-pool-sandbox':'p'}",
      NULL,
      { "{'metadata':{'namespace':'n','name':'s','labels':{" TRACK ",'" A
        "sandbox-template-ref-hash':'h','" A "warm-pool-sandbox':'p'},'ownerReferences':[" REF
        "]}}" },
      0,
      "patch Pod n/s {'metadata':{'labels':{'" A "warm-pool-sandbox':null}}}",
      NULL,
      NULL },
};

#define SUSPENDED "{'operatingMode':'Suspended','podTemplate':{'spec':{}}}"
static const struct row suspended_rows[] = {
    { "marks its pod as deleting and keeps the annotation",
      NOTED("s"),
      SUSPENDED,
      { "{'metadata':{'namespace':'n','name':'s','uid':'p7','ownerReferences':[" REF "]}}" },
      0,
      "delete Pod n/s uid=p7",
      NULL,
      NULL },
    { "does not delete it twice",
      NOTED("s"),
      SUSPENDED,
      { "{'metadata':{'namespace':'n','name':'s','uid':'p7','deletionTimestamp':'x',"
        "'ownerReferences':[" REF "]}}" },
      0,
      "",
      NULL,
      NULL },
    { "needs nothing without a pod", NULL, SUSPENDED, { NULL }, -1, "", NULL, NULL },
    { "forgets the annotation when the pod is gone",
      NOTED("s"),
      SUSPENDED,
      { NULL },
      -1,
      "",
      "",
      NULL },
    { "leaves a foreign pod and forgets it",
      NOTED("other"),
      SUSPENDED,
      { "{'metadata':{'namespace':'n','name':'other','ownerReferences':[" STRANGER "]}}" },
      0,
      "",
      "",
      NULL },
    { "leaves an unowned pod and forgets it",
      NOTED("other"),
      SUSPENDED,
      { "{'metadata':{'namespace':'n','name':'other','labels':{'" A "adoptable':'true'}}}" },
      0,
      "",
      "",
      NULL },
};

static void run(const struct row *r)
{
    const struct known_kinds *k = known_kinds();
    struct object *sandbox = test_object(
        k->sandbox, "{'metadata':{'namespace':'n','name':'s','uid':'u1'%s%s},'spec':%s}",
        r->meta ? "," : "", r->meta ? r->meta : "",
        r->spec ? r->spec : "{'podTemplate':{'spec':{'containers':[{'name':'c'}]}}}");
    struct object *pods[3] = { NULL }, *tracked[3];
    struct pod_view view = { .sandbox = sandbox, .tracked = tracked };
    struct pod_verdict got;

    for (size_t i = 0; i < LEN(pods) && r->pods[i]; i++) {
        pods[i] = test_object(k->pod, "%s", r->pods[i]);
        if (object_label(pods[i], LABEL_TRACKING))
            tracked[view.tracked_count++] = pods[i];
    }
    if (r->named >= 0)
        view.named = pods[r->named];
    pod_decide(&view, test_edit(), &got);
    test_same(r->name, "fault", got.fault.msg, r->fault ? r->fault : "");
    test_same(r->name, "step", test_step(&got.step), r->step);
    test_same(r->name, "annotation", got.note, r->note);
    test_objects_free();
}

static void reconcile_pod(void **state)
{
    EACH(r, rows)
        run(r);
}

static void reconcile_pod_suspended(void **state)
{
    EACH(r, suspended_rows)
        run(r);
}

static void resolve_pod_name(void **state)
{
    static const struct {
        const char *meta, *want;
    } names[] = {
        { "", "s" },
        { ",'annotations':{}", "s" },
        { ",'annotations':{'x':'y'}", "s" },
        { "," NOTED(""), "s" },
        { "," NOTED("other"), "other" },
    };

    EACH(r, names) {
        struct object *o =
            test_object(known_kinds()->sandbox, "{'metadata':{'name':'s'%s}}", r->meta);

        assert_string_equal(pod_name_of(o), r->want);
    }
    test_objects_free();
}

static void a_failed_create_forgets_a_stale_annotation(void **state)
{
    struct object *sandbox =
        test_object(known_kinds()->sandbox,
                    "{'metadata':{'namespace':'n','name':'s','uid':'u1'," NOTED("gone") "}}");
    struct pod_verdict got;

    pod_decide(&(struct pod_view){ .sandbox = sandbox }, test_edit(), &got);
    assert_int_equal(got.step.verb, STEP_CREATE);
    assert_string_equal(got.note, "s");
    assert_string_equal(got.note_if_failed, "");
    test_objects_free();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(reconcile_pod),
        cmocka_unit_test(reconcile_pod_suspended),
        cmocka_unit_test(resolve_pod_name),
        cmocka_unit_test(a_failed_create_forgets_a_stale_annotation),
    };

    return cmocka_run_group_tests_name("controller/pod", tests, NULL, NULL);
}
