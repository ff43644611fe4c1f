#include "controller/sandbox_status.h"

#include "controller/condition.h"
#include "controller/defer.h"
#include "controller/expiry.h"
#include "controller/testobject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW "2026-11-16T10:00:00Z"
#define POD(status)                                                                                \
    "{'metadata':{'ownerReferences':[{'kind':'Sandbox','uid':'u1','controller':true}]},'spec':{"   \
    "'nodeName':'node'},'status':{" status "}}"
#define STRANGER(status)                                                                           \
    "{'metadata':{'ownerReferences':[{'kind':'Job','uid':'j','controller':true}]},'spec':{"        \
    "'nodeName':'node'},'status':{" status "}}"
#define IPS   "'podIPs':[{'ip':'10.0.0.1'},{'ip':'fd00::1'}]"
#define READY "'phase':'Running','conditions':[{'type':'Ready','status':'True'}]"
#define SCHEDULED                                                                                  \
    "'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable','message':"    \
    "'0/3 nodes','lastTransitionTime':'2026-01-01T00:00:00Z'}]"
#define NOT_YET                                                                                    \
    "PodScheduled=Unknown PodSchedulingUnknown Pod has not reported a PodScheduled condition yet\n"
#define UNKNOWN_POD                                                                                \
    "PodScheduled=Unknown PodSchedulingUnknown Pod state is unknown. Pod scheduling cannot be determined\n"
#define NOT_SUSPENDED "Suspended=False NotSuspended Sandbox is not suspended\n"

/* The facts a row can say. */
#define SUSPENDED  1 /* the mode */
#define SERVICE    2 /* required */
#define HAS        4 /* and there */
#define POD_FAILED 8
#define INVALID    16

static const struct row {
    const char *name;
    unsigned facts;
    const char *pod;
    const char *fault, *conflict;
    const char *want; /* a line each: Type=Status Reason Message */
} rows[] = {
    { "no pod, service required", SERVICE, NULL, NULL, NULL,
      NOT_SUSPENDED
      "Ready=False DependenciesNotReady Pod does not exist; Service does not exist\n" },
    { "service only", SERVICE | HAS, NULL, NULL, NULL,
      NOT_SUSPENDED "Ready=False DependenciesNotReady Pod does not exist; Service Exists\n" },
    { "pending", 0, POD("'phase':'Pending'"), NULL, NULL,
      NOT_SUSPENDED NOT_YET "Ready=False DependenciesNotReady Pod exists with phase: Pending\n" },
    { "its image is not there", SERVICE | HAS,
      POD("'phase':'Pending','containerStatuses':[{'name':'a','state':{'running':{}}},{'name':'b','state':{"
          "'waiting':{'reason':'ErrImagePull','message':'no image x'}}}]"),
      NULL, NULL,
      NOT_SUSPENDED NOT_YET
      "Ready=False DependenciesNotReady Pod exists with phase: Pending; container \"b\": "
      "ErrImagePull: no image x; Service Exists\n" },
    { "a crash, of one that prepares it", 0,
      POD("'phase':'Running','initContainerStatuses':[{'name':'i','state':{'waiting':{'reason':'CrashLoopBackOff'}}}],"
          "'containerStatuses':[{'name':'c','state':{'waiting':{'reason':'PodInitializing'}}}]"),
      NULL, NULL,
      NOT_SUSPENDED NOT_YET
      "Ready=False DependenciesNotReady Pod is Running but not Ready; container \"i\": "
      "CrashLoopBackOff\n" },
    { "no phase yet", 0, POD(""), NULL, NULL,
      NOT_SUSPENDED NOT_YET "Ready=False DependenciesNotReady Pod exists with phase: \n" },
    { "running, not ready", 0, POD("'phase':'Running'"), NULL, NULL,
      NOT_SUSPENDED NOT_YET "Ready=False DependenciesNotReady Pod is Running but not Ready\n" },
    { "ready without an address", SERVICE | HAS, POD(READY), NULL, NULL,
      NOT_SUSPENDED NOT_YET
      "Ready=False DependenciesNotReady Pod is Ready but has no podIPs yet; Service Exists\n" },
    { "ready", 0, POD(READY "," IPS), NULL, NULL,
      NOT_SUSPENDED NOT_YET "Ready=True DependenciesReady Pod is Ready\n" },
    { "ready with its service", SERVICE | HAS, POD(READY "," IPS), NULL, NULL,
      NOT_SUSPENDED NOT_YET "Ready=True DependenciesReady Pod is Ready; Service Exists\n" },
    { "ready, its service is missing", SERVICE, POD(READY "," IPS), NULL, NULL,
      NOT_SUSPENDED NOT_YET
      "Ready=False DependenciesNotReady Pod is Ready; Service does not exist\n" },
    { "suspending", SUSPENDED, POD(READY), NULL, NULL,
      "Suspended=False PodTerminating Pod is terminating. Sandbox is suspending\n" NOT_YET
      "Ready=False SandboxSuspended Sandbox is suspending\n" },
    { "suspension blocked by an unowned pod", SUSPENDED, STRANGER(READY "," IPS), NULL, NULL,
      "Suspended=False PodNotOwned Refused to delete pod because it is not owned by this sandbox\n"
      "Ready=False SandboxSuspended Sandbox is suspending\n" },
    { "the delete of a suspension failed", SUSPENDED | POD_FAILED, POD(READY), "delete failed",
      NULL,
      "Suspended=False PodTerminating Pod is terminating. Sandbox is suspending\n" NOT_YET
      "Ready=False ReconcilerError Error seen: delete failed\n" },
    { "suspended", SUSPENDED, NULL, NULL, NULL,
      "Suspended=True PodTerminated Pod has been terminated. Sandbox is suspended\n"
      "Ready=False SandboxSuspended Sandbox is suspended\n" },
    { "suspended, the pod could not be looked up", SUSPENDED | POD_FAILED, NULL, "no answer", NULL,
      "Suspended=Unknown PodStateUnknown Pod state is unknown. Sandbox suspension cannot be "
      "confirmed\n" UNKNOWN_POD "Ready=False ReconcilerError Error seen: no answer\n" },
    { "running, the pod could not be looked up", POD_FAILED, NULL, "no answer", NULL,
      NOT_SUSPENDED UNKNOWN_POD "Ready=False ReconcilerError Error seen: no answer\n" },
    { "phase unknown", 0, POD("'phase':'Unknown'"), NULL, NULL,
      NOT_SUSPENDED NOT_YET "Ready=False DependenciesNotReady Pod exists with phase: Unknown\n" },
    { "failed", 0, POD("'phase':'Failed'"), NULL, NULL,
      NOT_SUSPENDED "Finished=True PodFailed Pod failed\n" NOT_YET
                    "Ready=False PodFailed Pod failed\n" },
    { "succeeded", 0, POD("'phase':'Succeeded'"), NULL, NULL,
      NOT_SUSPENDED "Finished=True PodSucceeded Pod completed successfully\n" NOT_YET
                    "Ready=False PodSucceeded Pod completed successfully\n" },
    { "a foreign terminal pod finishes nothing", SUSPENDED, STRANGER("'phase':'Failed'"), NULL,
      NULL,
      "Suspended=False PodNotOwned Refused to delete pod because it is not owned by this sandbox\n"
      "Ready=False SandboxSuspended Sandbox is suspending\n" },
    { "an error wins", 0, POD(READY "," IPS), "one\ntwo", NULL,
      NOT_SUSPENDED NOT_YET "Ready=False ReconcilerError Error seen: one\ntwo\n" },
    { "unschedulable is mirrored verbatim", 0, POD("'phase':'Pending'," SCHEDULED), NULL, NULL,
      NOT_SUSPENDED "PodScheduled=False Unschedulable 0/3 nodes\n"
                    "Ready=False DependenciesNotReady Pod exists with phase: Pending\n" },
    { "a gate is mirrored", 0,
      POD("'conditions':[{'type':'PodScheduled','status':'False','reason':'SchedulingGated'}]"),
      NULL, NULL,
      NOT_SUSPENDED "PodScheduled=False SchedulingGated \n"
                    "Ready=False DependenciesNotReady Pod exists with phase: \n" },
    { "scheduled without a reason", 0,
      POD("'conditions':[{'type':'PodScheduled','status':'True'}]"), NULL, NULL,
      NOT_SUSPENDED "PodScheduled=True PodScheduled \n"
                    "Ready=False DependenciesNotReady Pod exists with phase: \n" },
    { "not scheduled without a reason", 0,
      POD("'conditions':[{'type':'PodScheduled','status':'False'}]"), NULL, NULL,
      NOT_SUSPENDED "PodScheduled=False PodSchedulingUnknown \n"
                    "Ready=False DependenciesNotReady Pod exists with phase: \n" },
    { "several pods: only that is told", POD_FAILED, NULL, "another", "multiple Pods (2)",
      NOT_SUSPENDED UNKNOWN_POD "Ready=False MultiplePods multiple Pods (2)\n" },
    { "the server will never take the pod", POD_FAILED | INVALID, NULL, "Pod \"s\" is invalid",
      NULL, NOT_SUSPENDED UNKNOWN_POD "Ready=False InvalidConfiguration Pod \"s\" is invalid\n" },
};

static struct object *sandbox_of(bool is_suspended, const char *status)
{
    return test_object(known_kinds()->sandbox,
                       "{'metadata':{'namespace':'n','name':'s','uid':'u1','generation':3},'spec':"
                       "{'operatingMode':'%s'},'status':%s}",
                       is_suspended ? "Suspended" : "Running", status);
}

static struct sandbox_facts facts_of(const struct row *r)
{
    return (struct sandbox_facts){
        .sandbox = sandbox_of(r->facts & SUSPENDED, "{}"),
        .pod = r->pod ? test_object(known_kinds()->pod, "%s", r->pod) : NULL,
        .has_pod_failed = r->facts & POD_FAILED,
        .conflict = r->conflict,
        .fault = r->fault,
        .is_invalid = r->facts & INVALID,
        .is_service_known = true,
        .is_service_required = r->facts & SERVICE,
        .is_service_shown = r->facts & HAS,
        .has_service = r->facts & HAS,
        .cluster_domain = "cluster.local",
        .now = NOW,
    };
}

/* A line each; the generation is that of the sandbox everywhere. */
static void tell(struct json_node *status, char *text, size_t size)
{
    struct json_node *list = json_node_get(status, "conditions");
    size_t n = 0;
    int64_t generation;

    for (size_t i = 0; i < json_node_count(list); i++) {
        struct json_node *c = json_node_at(list, i);

        assert_true(json_node_i64(json_node_get(c, "observedGeneration"), &generation));
        assert_int_equal(generation, 3);
        n += (size_t)snprintf(text + n, size - n, "%.*s=%.*s %.*s %.*s\n",
                              SPAN_ARG(json_node_str(json_node_get(c, "type"))),
                              SPAN_ARG(json_node_str(json_node_get(c, "status"))),
                              SPAN_ARG(json_node_str(json_node_get(c, "reason"))),
                              SPAN_ARG(json_node_str(json_node_get(c, "message"))));
    }
}

static void compute_conditions(void **state)
{
    EACH(r, rows) {
        struct sandbox_facts f = facts_of(r);
        char text[2048] = "";

        tell(sandbox_status(&f, test_edit()), text, sizeof text);
        test_same(r->name, "list of conditions", text, r->want);
    }
    test_objects_free();
}

static void set_service_status_custom_domain(void **state)
{
    struct sandbox_facts f = { .sandbox = sandbox_of(false, "{}"),
                               .is_service_known = true,
                               .is_service_shown = true,
                               .cluster_domain = "my.domain",
                               .now = NOW };
    struct json_node *status = sandbox_status(&f, test_edit());

    assert_string_equal(json_node_cstr(json_node_get(status, "service")), "s");
    assert_string_equal(json_node_cstr(json_node_get(status, "serviceFQDN")), "s.n.svc.my.domain");
    f.is_service_shown = false;
    assert_null(json_node_get(sandbox_status(&f, test_edit()), "service"));
    f.sandbox = sandbox_of(false, "{'service':'s'}");
    f.is_service_known = false; /* a failed step says nothing of it */
    assert_non_null(json_node_get(sandbox_status(&f, test_edit()), "service"));
    test_objects_free();
}

static void a_foreign_pod_leaks_neither_address_nor_node(void **state)
{
    struct row own = { .pod = POD(READY "," IPS) };
    struct row foreign = { .facts = SUSPENDED, .pod = STRANGER(READY "," IPS) };
    struct sandbox_facts f = facts_of(&own);
    struct json_node *status = sandbox_status(&f, test_edit());

    test_same("own", "addresses", test_text(json_node_get(status, "podIPs")),
              "['10.0.0.1','fd00::1']");
    assert_string_equal(json_node_cstr(json_node_get(status, "nodeName")), "node");
    assert_string_equal(json_node_cstr(json_node_get(status, "selector")),
                        "agents.x-k8s.io/sandbox-name-hash=f60c4582");
    f = facts_of(&foreign);
    f.sandbox = sandbox_of(true, "{'podIPs':['1.2.3.4'],'nodeName':'n'}");
    status = sandbox_status(&f, test_edit());
    assert_null(json_node_get(status, "podIPs"));
    assert_null(json_node_get(status, "nodeName"));
    assert_non_null(json_node_get(status, "selector"));
    test_objects_free();
}

/* What a pass writes, with the status that the passes before it left. */
static const char *write_of(const char *have, const struct row *r)
{
    struct json_edit *ed = test_edit();
    struct sandbox_facts f = facts_of(r);
    struct step step;

    f.sandbox = sandbox_of(false, have);
    step = sandbox_status_step(f.sandbox, sandbox_status(&f, ed), ed);
    assert_true(step.verb == STEP_NONE || strcmp(step.sub, "status") == 0);
    return test_step(&step);
}

static void conditions_do_not_accumulate(void **state)
{
    struct row pending = { .pod = POD("'phase':'Pending'") };
    struct sandbox_facts f = facts_of(&pending);
    const char *status = test_text(sandbox_status(&f, test_edit()));

    for (int i = 0; i < 20; i++) {
        f.sandbox = sandbox_of(false, status);
        status = test_text(sandbox_status(&f, test_edit()));
    }
    assert_int_equal(json_count(object_at(sandbox_of(false, status), "status.conditions")), 3);
    assert_string_equal(write_of(status, &pending), "");
    test_objects_free();
}

/* Generations alone are no news; anything beside them is. */
static void new_generations_say_nothing_new(void **state)
{
    struct row pending = { .pod = POD("'phase':'Pending'") };
    struct row ready = { .pod = POD(READY "," IPS) };
    struct sandbox_facts f = facts_of(&ready);
    struct json_node *status = sandbox_status(&f, test_edit()), *before;
    struct json_node *list;

    f.sandbox = sandbox_of(false, test_text(status));
    assert_false(sandbox_status_is_renumbered(f.sandbox, status)); /* the same */
    before = json_node_copy(test_edit(), status);
    list = json_node_get(before, "conditions");
    assert_true(json_node_count(list) > 0);
    for (size_t i = 0; i < json_node_count(list); i++)
        json_node_set(json_node_at(list, i), "observedGeneration", json_edit_i64(test_edit(), 77));
    f.sandbox = sandbox_of(false, test_text(before));
    assert_true(sandbox_status_is_renumbered(f.sandbox, status));
    assert_string_not_equal(write_of(test_text(before), &ready),
                            ""); /* it is written all the same */
    json_node_set(before, "nodeName", json_edit_cstr(test_edit(), "elsewhere"));
    f.sandbox = sandbox_of(false, test_text(before));
    assert_false(sandbox_status_is_renumbered(f.sandbox, status));
    f = facts_of(&pending);
    f.sandbox = sandbox_of(false, test_text(status));
    assert_false(sandbox_status_is_renumbered(f.sandbox, sandbox_status(&f, test_edit())));
    f.sandbox = sandbox_of(false, "{}");
    assert_false(sandbox_status_is_renumbered(f.sandbox, status));
    test_objects_free();
}

static void coalesces_node_name_status_write(void **state)
{
    struct row pending = { .pod = POD("'phase':'Pending'") };
    struct row ready = { .pod = POD(READY "," IPS) };
    struct sandbox_facts f = facts_of(&pending);
    struct json_node *status = sandbox_status(&f, test_edit());
    const char *have;

    (void)json_node_remove(status, "nodeName");
    have = test_text(status);
    assert_string_equal(write_of(have, &pending), ""); /* waits for readiness */
    assert_non_null(strstr(write_of(have, &ready), "'nodeName':'node'"));
    f = facts_of(&ready);
    status = sandbox_status(&f, test_edit());
    (void)json_node_remove(status, "nodeName");
    assert_string_equal(write_of(test_text(status), &ready),
                        "patch Sandbox n/s {'status':{'nodeName':'node'}}");
    test_objects_free();
}

static void what_went_is_taken_away_by_a_null(void **state)
{
    struct row none = { 0 };

    assert_non_null(strstr(write_of("{'podIPs':['1.2.3.4'],'service':'s'}", &none),
                           "'podIPs':null,'service':null"));
    test_objects_free();
}

static void sandbox_expiry(void **state)
{
    static const struct {
        const char *name, *time;
        bool is_set, is_over;
        uint64_t wait_ms;
    } times[] = {
        { "none", "null", false, false, 0 },
        { "in the future", "'2026-11-16T10:00:30Z'", true, false, 30000 },
        { "now", "'2026-11-16T10:00:00Z'", true, true, 0 },
        { "half a second ahead", "'2026-11-16T10:00:00.5Z'", true, false, 2000 },
        { "past", "'2026-11-16T09:00:00+00:00'", true, true, 0 },
    };
    struct timespec now = { .tv_sec = 1794823200 }; /* NOW */

    EACH(r, times) {
        struct object *o =
            test_object(known_kinds()->sandbox, "{'spec':{'shutdownTime':%s}}", r->time);
        struct expiry got = expiry_of(object_at(o, "spec.shutdownTime"), now);

        if (got.is_set != r->is_set || got.is_over != r->is_over || got.wait_ms != r->wait_ms)
            fail_msg("%s: set %d, over %d, wait %llu", r->name, got.is_set, got.is_over,
                     (unsigned long long)got.wait_ms);
    }
    test_objects_free();
}

static void expiry_uses_two_passes_and_preserves_finished(void **state)
{
    struct object *o = sandbox_of(
        false, "{'podIPs':['1.2.3.4'],'service':'s','selector':'x','conditions':[{'type':"
               "'Finished','status':'True','reason':'PodFailed'},{'type':'PodScheduled','status':"
               "'True'},{'type':'Ready','status':'False','reason':'PodFailed',"
               "'lastTransitionTime':'t'}]}");
    const char *marked = test_text(sandbox_status_expired(o, NOW, test_edit()));
    struct json_node *ended;

    assert_false(expiry_is_marked(o));
    test_same("first pass", "status", marked,
              "{'podIPs':['1.2.3.4'],'service':'s','selector':'x','conditions':[{'type':'Finished',"
              "'status':'True','reason':'PodFailed'},{'type':'Ready','status':'False','reason':"
              "'SandboxExpired','lastTransitionTime':'t','observedGeneration':3,'message':"
              "'Sandbox has expired'}]}");
    o = sandbox_of(false, marked);
    assert_true(expiry_is_marked(o));
    ended = sandbox_status_ended(o, NOW, test_edit());
    test_same("second pass", "status", test_text(ended),
              "{'conditions':[{'type':'Finished','status':'True','reason':'PodFailed'},{'type':"
              "'Ready','status':'False','reason':'SandboxExpired','lastTransitionTime':'t',"
              "'observedGeneration':3,'message':'Sandbox has expired'}]}");
    test_objects_free();
}

/* TestRequeueDeferralCoalescesAdoptionPodPatch, …CrashRecovery: the clock of what may wait. */
static void deferral_is_not_prolonged(void **state)
{
    struct object *a = test_object(known_kinds()->sandbox, "{'metadata':{'name':'a','uid':'1'}}");
    struct object *b = test_object(known_kinds()->sandbox, "{'metadata':{'name':'b','uid':'2'}}");
    struct defer *d = defer_new(100);
    const char *namespace, *name;
    uint64_t left_ms;

    assert_false(defer_next_ms(d, 1000, &left_ms));
    assert_true(defer_waits(d, a, 1000));
    assert_true(defer_waits(d, b, 1010));
    assert_true(defer_waits(d, a, 1040)); /* asking again begins nothing anew */
    assert_false(defer_due(d, 1099, &namespace, &name));
    assert_true(defer_next_ms(d, 1040, &left_ms));
    assert_int_equal(left_ms, 60);
    assert_true(defer_due(d, 1100, &namespace, &name));
    assert_string_equal(name, "a");
    assert_false(defer_due(d, 1100, &namespace, &name)); /* told once, and b is not due */
    assert_false(defer_waits(d, a, 1100));
    assert_true(defer_waits(d, a, 1101)); /* it was done: another one */
    defer_forget(d, "2");
    defer_forget(d, "3");
    assert_true(defer_next_ms(d, 1111, &left_ms));
    assert_int_equal(left_ms, 90); /* of a: b is forgotten */
    assert_true(defer_waits(d, b, 2000));
    defer_free(d);
    d = defer_new(100); /* a new process begins the wait again, and still writes */
    assert_true(defer_waits(d, a, 3000));
    assert_false(defer_waits(d, a, 3100));
    defer_free(d);
    test_objects_free();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(compute_conditions),
        cmocka_unit_test(set_service_status_custom_domain),
        cmocka_unit_test(a_foreign_pod_leaks_neither_address_nor_node),
        cmocka_unit_test(conditions_do_not_accumulate),
        cmocka_unit_test(new_generations_say_nothing_new),
        cmocka_unit_test(coalesces_node_name_status_write),
        cmocka_unit_test(what_went_is_taken_away_by_a_null),
        cmocka_unit_test(sandbox_expiry),
        cmocka_unit_test(deferral_is_not_prolonged),
        cmocka_unit_test(expiry_uses_two_passes_and_preserves_finished),
    };

    return cmocka_run_group_tests_name("controller/sandbox_status", tests, NULL, NULL);
}
