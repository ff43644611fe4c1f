#include "controller/suite_impl.h"

#include "controller/condition.h"
#include "controller/testobject.h"
#include "controller/world.h"
#include "kube/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define TEMPLATE                                                                                   \
    "'podTemplate':{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':8080}]}]}}"
#define READY     "True DependenciesReady Pod is Ready"
#define RUNNING   "False NotSuspended"
#define SUSPENDED "True PodTerminated Pod has been terminated. Sandbox is suspended"
#define POD_PATCH "{'spec':{'operatingMode':'%s'}}"
static const struct kind *sandbox(void)
{
    return known_kinds()->sandbox;
}

static const struct kind *pod(void)
{
    return known_kinds()->pod;
}

static struct object *make(struct world *w, const char *name, const char *more)
{
    return world_create(w, sandbox(), "{'metadata':{'name':'%s'},'spec':{" TEMPLATE "%s}}", name,
                        more);
}

static struct object *until(struct world *w, const char *type, const char *text)
{
    return world_until_condition(w, sandbox(), "s", type, text);
}

static void assert_owned(const struct object *child, const struct object *parent)
{
    struct object_owner owner;

    assert_non_null(child);
    assert_true(object_owner_controller(child, &owner));
    assert_string_equal(owner.api_version, "agents.x-k8s.io/v1beta1");
    assert_string_equal(owner.kind, "Sandbox");
    assert_string_equal(owner.uid, object_uid(parent));
    assert_true(owner.is_blocking);
}

static const char *since(const struct object *o, const char *type)
{
    return json_cstr(
        json_get(condition_find(object_at(o, "status.conditions"), type), "lastTransitionTime"));
}

static bool is_another(struct world *w, const struct object *o, const void *first)
{
    (void)w;
    return o && strcmp(object_uid(o), object_uid(first)) != 0;
}

static bool has_only_conditions(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return o && json_count(object_member(o, "status")) == 1;
}

static bool has_no_service(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return o && !object_at(o, "status.service");
}

static bool has_label_a(struct world *w, const struct object *o, const void *value)
{
    const char *have = o ? object_label(o, "a") : NULL;

    (void)w;
    return value ? have && strcmp(have, value) == 0 : o && !have;
}

/* TestSimpleSandbox; TestReconcile: minimal spec. */
static void simple_sandbox(void **state)
{
    struct world *w = *state;
    struct object *s = make(w, "s", ""), *p;

    s = until(w, "Ready", READY);
    p = world_get(w, pod(), "s");
    assert_owned(p, s);
    assert_string_equal(object_label(p, "agents.x-k8s.io/sandbox-name-hash"), "f60c4582");
    assert_string_equal(object_annotation(s, "agents.x-k8s.io/pod-name"), "s");
    assert_int_equal(json_count(object_at(s, "status.podIPs")), 1);
    assert_string_equal(json_cstr(json_first(object_at(s, "status.podIPs"))),
                        object_text(p, "status.podIP"));
    assert_string_equal(object_text(s, "status.selector"),
                        "agents.x-k8s.io/sandbox-name-hash=f60c4582");
    assert_null(object_at(s, "status.service"));
    assert_null(world_get(w, known_kinds()->service, "s"));
    assert_int_equal(json_count(object_at(s, "status.conditions")), 3);
}

/* TestReconcile: service=true; PVC, Pod and Service together. TestSandboxVolumeClaimTemplates. */
static void service_and_volume_claims(void **state)
{
    struct world *w = *state;
    struct object *s, *o;

    (void)make(w, "s",
               ",'service':true,'volumeClaimTemplates':[{'metadata':{'name':'data'},'spec':{"
               "'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}]");
    s = until(w, "Ready", READY "; Service Exists");
    assert_string_equal(object_text(s, "status.service"), "s");
    assert_non_null(strstr(object_text(s, "status.serviceFQDN"), ".svc.cluster.local"));
    o = world_get(w, known_kinds()->service, "s");
    assert_owned(o, s);
    assert_string_equal(object_text(o, "spec.clusterIP"), "None");
    o = world_get(w, known_kinds()->volume_claim, "data-s");
    assert_owned(o, s);
    o = world_get(w, pod(), "s");
    assert_non_null(strstr(test_text(object_thaw(o, NULL, test_edit())),
                           "'persistentVolumeClaim':{'claimName':'data-s'}"));
    (void)world_patch(w, sandbox(), "s", NULL, "{'spec':{'service':false}}");
    world_until_gone(w, known_kinds()->service, "s");
    s = world_until(w, sandbox(), "s", "without a service", has_no_service, NULL);
    assert_true(suite_has_condition(s, "Ready", READY));
}

/* TestReconcile: existing adoptable pod adopted. */
static void adopts_an_existing_pod(void **state)
{
    struct world *w = *state;
    struct object *s;

    (void)world_create(w, pod(),
                       "{'metadata':{'name':'s','labels':{'agents.x-k8s.io/adoptable':'true'}},"
                       "'spec':{'containers':[{'name':'c','image':'i'}]}}");
    (void)make(w, "s", "");
    s = until(w, "Ready", READY);
    assert_owned(world_get(w, pod(), "s"), s);
}

/* TestSandboxSuspendResumeCycleWithOperatingMode */
static void suspend_resume_cycle(void **state)
{
    struct world *w = *state;
    struct object *s, *first;

    (void)make(w, "s", ",'service':true");
    (void)until(w, "Ready", READY);
    for (int i = 0; i < 2; i++) {
        first = world_get(w, pod(), "s");
        (void)world_patch(w, sandbox(), "s", NULL, POD_PATCH, "Suspended");
        s = until(w, "Suspended", SUSPENDED);
        assert_null(world_get(w, pod(), "s"));
        assert_non_null(world_get(w, known_kinds()->service, "s"));
        s = until(w, "Ready", "False SandboxSuspended Sandbox is suspended");
        assert_null(object_at(s, "status.podIPs"));
        assert_null(object_annotation(s, "agents.x-k8s.io/pod-name"));
        assert_null(condition_find(object_at(s, "status.conditions"), "PodScheduled"));
        (void)world_patch(w, sandbox(), "s", NULL, POD_PATCH, "Running");
        s = until(w, "Ready", READY);
        assert_true(strcmp(object_uid(world_get(w, pod(), "s")), object_uid(first)) != 0);
        assert_true(suite_has_condition(s, "Suspended", RUNNING));
    }
}

/* TestSandboxSuspensionWithTerminatingPod */
static void suspension_with_terminating_pod(void **state)
{
    struct world *w = *state;
    struct object *s;

    (void)make(w, "s", "");
    (void)until(w, "Ready", READY);
    (void)world_patch(w, pod(), "s", NULL, "{'metadata':{'finalizers':['test/hold']}}");
    (void)world_patch(w, sandbox(), "s", NULL, POD_PATCH, "Suspended");
    s = until(w, "Suspended", "False PodTerminating Pod is terminating. Sandbox is suspending");
    assert_true(object_is_deleting(world_get(w, pod(), "s")));
    assert_true(suite_has_condition(s, "Ready", "False SandboxSuspended Sandbox is suspending"));
    (void)world_patch(w, pod(), "s", NULL, "{'metadata':{'finalizers':null}}");
    (void)until(w, "Suspended", SUSPENDED);
}

/* TestSandboxPodDeletionKeepsSuspendedFalse */
static void pod_deletion_keeps_suspended_false(void **state)
{
    struct world *w = *state;
    struct object *before, *after, *first;

    (void)make(w, "s", "");
    before = until(w, "Ready", READY);
    first = world_get(w, pod(), "s");
    world_delete(w, pod(), "s");
    after = world_until(w, pod(), "s", "another pod", is_another, first);
    after = until(w, "Ready", READY);
    assert_string_equal(since(before, "Suspended"), since(after, "Suspended"));
}

/* TestSandboxSuspensionBlockedByUnownedPodConflict */
static void suspension_blocked_by_unowned_pod(void **state)
{
    struct world *w = *state;
    struct object *s;

    (void)world_create(
        w, pod(), "{'metadata':{'name':'s'},'spec':{'containers':[{'name':'c','image':'i'}]}}");
    (void)make(w, "s", ",'service':true,'operatingMode':'Suspended'");
    s = until(w, "Suspended", "False PodNotOwned Refused to delete pod");
    assert_null(object_at(s, "status.podIPs"));
    (void)world_until_there(w, known_kinds()->service, "s");
    assert_false(object_is_deleting(world_get(w, pod(), "s")));
    world_delete(w, pod(), "s"); /* and nothing stands in its way any more */
    (void)until(w, "Suspended", SUSPENDED);
}

/* A name that others hold: told, tried again, recovered when it is free. */
static void recovers_when_a_name_is_free_again(void **state)
{
    struct world *w = *state;
    struct object *owner;

    (void)world_create(
        w, pod(), "{'metadata':{'name':'s'},'spec':{'containers':[{'name':'c','image':'i'}]}}");
    owner = world_create(w, kind_find("", "v1", "configmaps"), "{'metadata':{'name':'o'}}");
    (void)world_create(w, known_kinds()->service,
                       "{'metadata':{'name':'s','ownerReferences':[{'apiVersion':'v1','kind':"
                       "'ConfigMap','name':'o','uid':'%s','controller':true}]},'spec':{'clusterIP':"
                       "'None'}}",
                       object_uid(owner));
    (void)make(w, "s", ",'service':true");
    (void)until(w, "Ready", "False ReconcilerError Error seen: pod \"s\" exists");
    world_delete(w, pod(), "s");
    (void)until(w, "Ready", "False ReconcilerError Error seen: service \"s\" is owned by");
    world_delete(w, known_kinds()->service, "s");
    (void)until(w, "Ready", READY "; Service Exists");
}

static const char *in_seconds(int s)
{
    static char text[TIME_TEXT_BYTES];

    return kube_time_text(text, time(NULL) + s);
}

/* TestSandboxShutdownTime, TestSandboxRetainedExpiryPreservesFinishedCondition; and a later time revives it. */
static void shutdown_time_retain(void **state)
{
    struct world *w = *state;
    struct object *s;

    (void)make(w, "s", ",'service':true");
    (void)until(w, "Ready", READY);
    (void)world_patch(w, pod(), "s", "status", "{'status':{'phase':'Failed'}}");
    (void)until(w, "Finished", "True PodFailed Pod failed");
    (void)world_patch(w, sandbox(), "s", NULL, "{'spec':{'shutdownTime':'%s'}}", in_seconds(-1));
    s = until(w, "Ready", "False SandboxExpired Sandbox has expired");
    world_until_gone(w, pod(), "s");
    world_until_gone(w, known_kinds()->service, "s");
    s = world_until(w, sandbox(), "s", "only conditions", has_only_conditions, NULL);
    assert_true(suite_has_condition(s, "Finished", "True PodFailed"));
    assert_true(suite_has_condition(s, "Suspended", "False NotSuspended"));
    assert_null(condition_find(object_at(s, "status.conditions"), "PodScheduled"));
    (void)world_patch(w, sandbox(), "s", NULL, "{'spec':{'shutdownTime':'%s'}}", in_seconds(3600));
    (void)until(w, "Ready", READY);
}

/* It ends not before its time, and by itself. */
static void shutdown_time_delete(void **state)
{
    struct world *w = *state;
    char more[128], text[TIME_TEXT_BYTES];
    struct timespec now;
    time_t end = time(NULL) + 3;

    (void)snprintf(more, sizeof more, ",'shutdownPolicy':'Delete','shutdownTime':'%s'",
                   kube_time_text(text, end));
    (void)make(w, "s", more);
    (void)until(w, "Ready", READY);
    world_until_gone(w, sandbox(), "s");
    (void)clock_gettime(CLOCK_REALTIME, &now); /* time() may be a tick behind */
    assert_true(now.tv_sec >= end);
    world_until_gone(w, pod(), "s"); /* by the garbage collector, if not before */
}

/* TestReconcile: expired skips a foreign pod. */
static void expiry_leaves_what_is_not_its_own(void **state)
{
    struct world *w = *state;
    char more[96];

    (void)world_create(
        w, pod(), "{'metadata':{'name':'s'},'spec':{'containers':[{'name':'c','image':'i'}]}}");
    (void)snprintf(more, sizeof more, ",'shutdownTime':'%s'", in_seconds(-5));
    (void)make(w, "s", more);
    (void)until(w, "Ready", "False SandboxExpired");
    (void)world_until(w, sandbox(), "s", "only conditions", has_only_conditions, NULL);
    world_idle(w, 20);
    assert_false(object_is_deleting(world_get(w, pod(), "s")));
}

/* TestReconcileChildResourcesSurfacesMultipleOwnedPods */
static void surfaces_multiple_owned_pods(void **state)
{
    struct world *w = *state;
    struct object *s = make(w, "s", "");

    (void)until(w, "Ready", READY);
    (void)world_create(
        w, pod(),
        "{'metadata':{'name':'s2','labels':{'agents.x-k8s.io/sandbox-name-hash':'f60c4582'},"
        "'ownerReferences':[{'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Sandbox','name':'s',"
        "'uid':'%s','controller':true}]},'spec':{'containers':[{'name':'c','image':'i'}]}}",
        object_uid(s));
    s = until(w, "Ready",
              "False MultiplePods multiple Pods (2) are controlled by this Sandbox; refusing to "
              "choose or create a Pod");
    assert_null(object_at(s, "status.podIPs"));
    (void)world_patch(w, sandbox(), "s", NULL, "{'metadata':{'labels':{'x':'y'}}}");
    suite_until_count(w, known_kinds()->event, 1);
    assert_int_equal(suite_until_warned(w, s, "MultiplePods", "multiple Pods (2)"), 1);
    world_delete(w, pod(), "s2");
    (void)until(w, "Ready", READY);
}

/* Release 1.0: a Pod that the server refuses for ever. */
static void an_invalid_pod_is_final_until_it_changes(void **state)
{
    struct world *w = *state;
    struct object *event;

    (void)world_create(w, sandbox(),
                       "{'metadata':{'name':'s'},'spec':{'podTemplate':{'spec':{'containers':[{"
                       "'name':'Not A Name','image':'i'}]}}}}");
    (void)until(w, "Ready", "False InvalidConfiguration cannot create Pod");
    suite_until_count(w, known_kinds()->event, 1);
    (void)world_count(w, known_kinds()->event, NULL, &event);
    assert_string_equal(object_text(event, "reason"), "InvalidConfiguration");
    (void)world_patch(
        w, sandbox(), "s", NULL,
        "{'spec':{'podTemplate':{'spec':{'containers':[{'name':'c','image':'i'}]}}}}");
    (void)until(w, "Ready", READY);
}

/* TestReconcilePod: labels follow the template, on the Pod that is there. */
static void labels_follow_the_template(void **state)
{
    struct world *w = *state;
    struct object *p;

    (void)make(w, "s", "");
    (void)until(w, "Ready", READY);
    (void)world_patch(w, sandbox(), "s", NULL,
                      "{'spec':{'podTemplate':{'metadata':{'labels':{'a':'1'}}}}}");
    p = world_until(w, pod(), "s", "label a=1", has_label_a, "1");
    (void)world_patch(w, sandbox(), "s", NULL,
                      "{'spec':{'podTemplate':{'metadata':{'labels':{'a':null}}}}}");
    p = world_until(w, pod(), "s", "no label a", has_label_a, NULL);
    assert_string_equal(object_label(p, "agents.x-k8s.io/sandbox-name-hash"), "f60c4582");
}

/* TestParallelSandboxes */
static void parallel_sandboxes(void **state)
{
    struct world *w = *state;
    char name[16];

    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        (void)make(w, name, ",'service':true");
    }
    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        (void)world_until_condition(w, sandbox(), name, "Ready", READY);
    }
    assert_int_equal(world_count(w, pod(), NULL, NULL), 20);
}

/* Whatever the controllers had begun when they ended, others finish. */
static void a_restart_loses_nothing(void **state)
{
    struct world *w = *state;

    world_hold_pods(w, true);
    (void)make(w, "s", ",'service':true");
    (void)world_until_there(w, pod(), "s");
    world_stop(w);
    world_hold_pods(w, false);
    (void)make(w, "late", "");
    world_start(w);
    (void)until(w, "Ready", READY "; Service Exists");
    (void)world_until_condition(w, sandbox(), "late", "Ready", READY);
    assert_int_equal(world_count(w, pod(), NULL, NULL), 2);
}

/* A pass that finds everything right writes nothing. */
static void nothing_is_written_twice(void **state)
{
    struct world *w = *state;
    struct object *s, *p;

    (void)make(w, "s", ",'service':true");
    (void)until(w, "Ready", READY);
    world_idle(w, 20);
    s = world_get(w, sandbox(), "s");
    p = world_get(w, pod(), "s");
    world_stop(w);
    world_start(w);
    world_idle(w, 50);
    assert_int_equal(object_version(world_get(w, sandbox(), "s")), object_version(s));
    assert_int_equal(object_version(world_get(w, pod(), "s")), object_version(p));
}

int suite_sandbox_run(void)
{
    static const struct CMUnitTest tests[] = {
        SUITE_TEST(simple_sandbox),
        SUITE_TEST(service_and_volume_claims),
        SUITE_TEST(adopts_an_existing_pod),
        SUITE_TEST(suspend_resume_cycle),
        SUITE_TEST(suspension_with_terminating_pod),
        SUITE_TEST(pod_deletion_keeps_suspended_false),
        SUITE_TEST(suspension_blocked_by_unowned_pod),
        SUITE_TEST(recovers_when_a_name_is_free_again),
        SUITE_TEST(shutdown_time_retain),
        SUITE_TEST(shutdown_time_delete),
        SUITE_TEST(expiry_leaves_what_is_not_its_own),
        SUITE_TEST(surfaces_multiple_owned_pods),
        SUITE_TEST(an_invalid_pod_is_final_until_it_changes),
        SUITE_TEST(labels_follow_the_template),
        SUITE_TEST(parallel_sandboxes),
        SUITE_TEST(a_restart_loses_nothing),
        SUITE_TEST(nothing_is_written_twice),
    };

    return cmocka_run_group_tests_name("controller/sandboxes", tests, NULL, NULL);
}
