/* What people get wrong: it is told by a condition and an Event that name the cause, and it heals once it is put right. */
#include "controller/suite_impl.h"

#include "controller/names.h"
#include "controller/testobject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define A          "agents.x-k8s.io/"
#define CONTAINERS "'podTemplate':{'spec':{'containers':[{'name':'c','image':'i'}]}}"

static const struct kind *claim(void)
{
    return known_kinds()->claim;
}

static const struct kind *sandbox(void)
{
    return known_kinds()->sandbox;
}

/* The claim says so, and there is one Event of it. */
static void until_told(struct world *w, const char *reason, const char *message)
{
    char text[256];
    struct object *c;

    (void)snprintf(text, sizeof text, "False %s %s%s", reason,
                   strcmp(reason, "ReconcilerError") == 0 ? "Error seen: " : "", message);
    c = world_until_condition(w, claim(), "c", "Ready", text);
    assert_int_equal(suite_until_warned(w, c, reason, message), 1);
}

static void until_ready(struct world *w)
{
    (void)suite_sandbox_of(w, world_until_condition(w, claim(), "c", "Ready", SUITE_READY));
    assert_int_equal(world_count(w, sandbox(), A "claim-uid", NULL), 1);
}

static void a_pool_or_template_that_is_not_there(void **state)
{
    struct world *w = *state;

    suite_make_claim(w, "c", "");
    until_told(w, "WarmPoolNotFound", "SandboxWarmPool \"p\" not found");
    suite_make_pool(w, 1);
    until_told(w, "TemplateNotFound", "SandboxTemplate \"t\" not found");
    assert_int_equal(suite_until_warned(w, world_get(w, known_kinds()->pool, "p"),
                                        "TemplateNotFound", "SandboxTemplate \"t\" not found"),
                     1);
    suite_make_template(w, "");
    until_ready(w);
    suite_until_full(w, 1);
}

static void metadata_that_is_not_allowed(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 1, "");
    suite_make_claim(w, "c", ",'additionalPodMetadata':{'labels':{'team':'x'}}");
    until_told(w, "InvalidMetadata", "invalid additionalPodMetadata: label \"team\"");
    assert_int_equal(world_count(w, sandbox(), A "claim-uid", NULL), 0);
    (void)world_patch(w, claim(), "c", NULL,
                      "{'spec':{'additionalPodMetadata':{'labels':{'team':null,"
                      "'sandbox.users.io/team':'x'}}}}");
    until_ready(w);
}

/* A key that the template has, with another value: either side can put it right. */
static void metadata_that_the_template_says_otherwise(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 0, "");
    (void)world_patch(w, known_kinds()->template, "t", NULL,
                      "{'spec':{'podTemplate':{'metadata':{'annotations':{'note':'mine'}}}}}");
    suite_make_claim(w, "c", ",'additionalPodMetadata':{'annotations':{'note':'yours'}}");
    until_told(w, "ReconcilerError",
               "additionalPodMetadata: \"note\" is set to another value by the template");
    (void)world_patch(w, known_kinds()->template, "t", NULL,
                      "{'spec':{'podTemplate':{'metadata':{'annotations':{'note':'yours'}}}}}");
    until_ready(w);
}

/* Healed by the owner of the template; a claim that has its sandbox is not asked again. */
static void variables_that_are_not_allowed(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 1, "");
    suite_make_claim(w, "c", ",'env':[{'name':'A','value':'1'}]");
    until_told(w, "EnvVarsInjectionRejected",
               "environment variable injection rejected: SandboxTemplate \"t\" does not allow it");
    (void)world_patch(w, known_kinds()->template, "t", NULL,
                      "{'spec':{'envVarsInjectionPolicy':'Allowed'}}");
    until_ready(w);
    assert_non_null(world_get(w, sandbox(), "c"));
}

static void variables_for_no_container(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 1, ",'envVarsInjectionPolicy':'Allowed'");
    suite_make_claim(w, "c", ",'env':[{'name':'A','value':'1','containerName':'x'}]");
    until_told(w, "ReconcilerError", "environment variable \"A\" is for container \"x\"");
    (void)world_patch(w, claim(), "c", NULL,
                      "{'spec':{'env':[{'name':'A','value':'1','containerName':'c'}]}}");
    until_ready(w);
}

static void volumes_that_are_not_allowed(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 1, "");
    suite_make_claim(w, "c",
                     ",'volumeClaimTemplates':[{'metadata':{'name':'data'},'spec':{'accessModes':["
                     "'ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}]");
    until_told(w, "VolumeClaimTemplatesError",
               "SandboxTemplate \"t\" does not allow volumeClaimTemplates of claims");
    (void)world_patch(w, known_kinds()->template, "t", NULL,
                      "{'spec':{'volumeClaimTemplatesPolicy':'Allowed'}}");
    until_ready(w);
    assert_non_null(world_get(w, known_kinds()->volume_claim, "data-c"));
}

static void a_sandbox_of_the_claims_name(void **state)
{
    struct world *w = *state;

    suite_open_pool(w, 1, "");
    (void)world_create(w, sandbox(), "{'metadata':{'name':'c'},'spec':{" CONTAINERS "}}");
    suite_make_claim(w, "c", "");
    until_told(w, "ReconcilerError", "sandbox \"c\" is not controlled by claim \"c\"");
    world_delete(w, sandbox(), "c");
    until_ready(w);
}

/* ---- names that others hold ---- */

static void until_sandbox_told(struct world *w, const char *message)
{
    char text[256];
    struct object *s;

    (void)snprintf(text, sizeof text, "False ReconcilerError Error seen: %s", message);
    s = world_until_condition(w, sandbox(), "s", "Ready", text);
    (void)suite_until_warned(w, s, "ReconcilerError", "");
}

static struct object *make_owner(struct world *w)
{
    return world_create(w, kind_find("", "v1", "configmaps"), "{'metadata':{'name':'o'}}");
}

#define OWNED_BY_O                                                                                 \
    "'ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap','name':'o','uid':'%s','controller':" \
    "true}]"

static void a_foreign_pod(void **state)
{
    struct world *w = *state;
    struct object *o = make_owner(w);

    (void)world_create(w, known_kinds()->pod,
                       "{'metadata':{'name':'s'," OWNED_BY_O "},'spec':{'containers':[{'name':'c',"
                       "'image':'i'}]}}",
                       object_uid(o));
    (void)world_create(w, sandbox(), "{'metadata':{'name':'s'},'spec':{" CONTAINERS "}}");
    until_sandbox_told(w, "pod \"s\" is owned by ConfigMap/o");
    world_delete(w, known_kinds()->pod, "s");
    (void)world_until_condition(w, sandbox(), "s", "Ready", SUITE_READY);
}

static void a_foreign_service(void **state)
{
    struct world *w = *state;
    struct object *o = make_owner(w);

    (void)world_create(w, known_kinds()->service,
                       "{'metadata':{'name':'s'," OWNED_BY_O "},'spec':{'clusterIP':'None'}}",
                       object_uid(o));
    (void)world_create(w, sandbox(),
                       "{'metadata':{'name':'s'},'spec':{'service':true," CONTAINERS "}}");
    until_sandbox_told(w, "service \"s\" is owned by ConfigMap/o");
    world_delete(w, known_kinds()->service, "s");
    (void)world_until_condition(w, sandbox(), "s", "Ready", SUITE_READY "; Service Exists");
}

/* The Pod uses it already, so that it cannot be deleted: its owner gives it away. */
static void a_foreign_volume_claim(void **state)
{
    struct world *w = *state;
    struct object *o = make_owner(w);

    (void)world_create(w, known_kinds()->volume_claim,
                       "{'metadata':{'name':'data-s'," OWNED_BY_O
                       "},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{"
                       "'storage':'1Gi'}}}}",
                       object_uid(o));
    (void)world_create(
        w, sandbox(),
        "{'metadata':{'name':'s'},'spec':{" CONTAINERS
        ",'volumeClaimTemplates':[{'metadata':{'name':'data'},'spec':{'accessModes':["
        "'ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}]}}");
    until_sandbox_told(w, "PVC \"data-s\" is owned by ConfigMap/o");
    (void)world_patch(w, known_kinds()->volume_claim, "data-s", NULL,
                      "{'metadata':{'ownerReferences':null,'labels':{'" A "adoptable':'true'}}}");
    (void)world_until_condition(w, sandbox(), "s", "Ready", SUITE_READY);
    assert_int_equal(ownership_of(world_get(w, known_kinds()->volume_claim, "data-s"),
                                  world_get(w, sandbox(), "s")),
                     OWNED);
}

/* ---- edited by hand ---- */

static bool is_owned_again(struct world *w, const struct object *child, const void *parent)
{
    (void)w;
    return child && ownership_of(child, parent) == OWNED &&
           object_label(child, A "sandbox-name-hash") != NULL;
}

static bool has_selector(struct world *w, const struct object *o, const void *arg)
{
    (void)w, (void)arg;
    return o && !object_at(o, "spec.selector.x") && object_label(o, A "sandbox-name-hash");
}

/* What is the sandbox's own is as it was, whoever edited it. */
static void children_that_were_edited(void **state)
{
    struct world *w = *state;
    struct object *s;

    (void)world_create(w, sandbox(),
                       "{'metadata':{'name':'s'},'spec':{'service':true," CONTAINERS "}}");
    s = world_until_condition(w, sandbox(), "s", "Ready", SUITE_READY);
    (void)world_patch(w, known_kinds()->pod, "s", NULL, "{'metadata':{'ownerReferences':null}}");
    (void)world_until(w, known_kinds()->pod, "s", "owned again", is_owned_again, s);
    (void)world_patch(w, known_kinds()->pod, "s", NULL,
                      "{'metadata':{'labels':{'" A "sandbox-name-hash':null}}}");
    (void)world_until(w, known_kinds()->pod, "s", "labelled again", is_owned_again, s);
    (void)world_patch(w, known_kinds()->service, "s", NULL,
                      "{'metadata':{'labels':{'" A "sandbox-name-hash':null}},'spec':{'selector':{"
                      "'x':'y'}}}");
    (void)world_until(w, known_kinds()->service, "s", "repaired", has_selector, NULL);
    world_delete(w, known_kinds()->service, "s");
    (void)world_until_there(w, known_kinds()->service, "s");
    (void)world_patch(w, sandbox(), "s", NULL,
                      "{'metadata':{'annotations':{'" A "pod-name':'x'}}}");
    (void)world_until_condition(w, sandbox(), "s", "Ready", SUITE_READY);
    assert_int_equal(world_count(w, known_kinds()->pod, NULL, NULL), 1);
}

static bool is_noted(struct world *w, const struct object *c, const void *name)
{
    const char *shown = c ? object_text(c, "status.sandbox.name") : NULL;

    (void)w;
    return shown && strcmp(shown, name) == 0 && suite_has_condition(c, "Ready", SUITE_READY);
}

/* Whatever is taken away of the two places where it stands, the claim keeps its sandbox. */
static void a_claim_that_was_edited(void **state)
{
    struct world *w = *state;
    struct object *s;

    suite_open_pool(w, 2, "");
    suite_make_claim(w, "c", "");
    s = suite_sandbox_of(w, world_until_condition(w, claim(), "c", "Ready", SUITE_READY));
    (void)world_patch(w, claim(), "c", "status", "{'status':{'sandbox':null,'conditions':null}}");
    (void)world_until(w, claim(), "c", "the same sandbox", is_noted, object_name(s));
    (void)world_patch(w, claim(), "c", NULL,
                      "{'metadata':{'annotations':{'" A "sandbox-name':null}}}");
    (void)world_patch(w, claim(), "c", NULL, "{'spec':{'warmPoolRef':{'name':'another'}}}");
    world_idle(w, 30);
    (void)world_until(w, claim(), "c", "the same sandbox", is_noted, object_name(s));
    assert_int_equal(world_count(w, sandbox(), A "claim-uid", NULL), 1);
}

static bool has_another(struct world *w, const struct object *c, const void *name)
{
    const char *shown = c ? object_text(c, "status.sandbox.name") : NULL;

    (void)w;
    return shown && strcmp(shown, name) != 0 && suite_has_condition(c, "Ready", SUITE_READY);
}

/* Its sandbox is taken away from it: it gets another, and leaves that one alone. */
static void a_sandbox_that_was_taken_away(void **state)
{
    struct world *w = *state;
    struct object *s, *c;

    suite_open_pool(w, 2, "");
    suite_make_claim(w, "c", "");
    s = suite_sandbox_of(w, world_until_condition(w, claim(), "c", "Ready", SUITE_READY));
    (void)world_patch(w, sandbox(), object_name(s), NULL, "{'metadata':{'ownerReferences':null}}");
    (void)world_patch(w, claim(), "c", NULL, "{'metadata':{'labels':{'look':'again'}}}");
    c = world_until(w, claim(), "c", "another sandbox", has_another, object_name(s));
    (void)suite_sandbox_of(w, c);
    s = world_get(w, sandbox(), object_name(s));
    assert_non_null(s);
    assert_false(object_is_deleting(s));
}

/* ---- how often people are told ---- */

/* A claim that is stuck says so once, however often it is looked at, and by whomever. */
static void a_stuck_claim_is_one_event(void **state)
{
    struct world *w = *state;

    (void)world_create(w, sandbox(), "{'metadata':{'name':'c'},'spec':{" CONTAINERS "}}");
    suite_open_pool(w, 0, "");
    suite_make_claim(w, "c", "");
    until_told(w, "ReconcilerError", "sandbox \"c\" is not controlled by claim \"c\"");
    for (int i = 0; i < 20; i++)
        (void)world_patch(w, claim(), "c", NULL, "{'metadata':{'labels':{'look':'%d'}}}", i);
    world_stop(w);
    world_start(w);
    world_idle(w, 50);
    suite_until_count(w, known_kinds()->event, 1);
}

/* TestEventSeries, as the public recorder has it: what is told again and again is one Event that counts. */
static void what_is_told_again_is_counted(void **state)
{
    struct world *w = *state;
    int64_t times = 0;
    struct object *c;

    suite_make_claim(w, "c", "");
    for (int i = 0; i < 4; i++) {
        c = world_until_condition(w, claim(), "c", "Ready", "False WarmPoolNotFound");
        suite_make_pool(w, 0);
        (void)world_until_condition(w, claim(), "c", "Ready", "False TemplateNotFound");
        world_delete(w, known_kinds()->pool, "p");
    }
    for (int i = 0; i < 2000 && times < 4; i++) {
        times = suite_until_warned(w, c, "WarmPoolNotFound", "SandboxWarmPool \"p\" not found");
        world_idle(w, 2);
    }
    assert_true(times >= 4);
    assert_true(suite_until_warned(w, c, "TemplateNotFound", "") >= 4);
}

int suite_input_run(void)
{
    static const struct CMUnitTest tests[] = {
        SUITE_TEST(a_pool_or_template_that_is_not_there),
        SUITE_TEST(metadata_that_is_not_allowed),
        SUITE_TEST(metadata_that_the_template_says_otherwise),
        SUITE_TEST(variables_that_are_not_allowed),
        SUITE_TEST(variables_for_no_container),
        SUITE_TEST(volumes_that_are_not_allowed),
        SUITE_TEST(a_sandbox_of_the_claims_name),
        SUITE_TEST(a_foreign_pod),
        SUITE_TEST(a_foreign_service),
        SUITE_TEST(a_foreign_volume_claim),
        SUITE_TEST(children_that_were_edited),
        SUITE_TEST(a_claim_that_was_edited),
        SUITE_TEST(a_sandbox_that_was_taken_away),
        SUITE_TEST(a_stuck_claim_is_one_event),
        SUITE_TEST(what_is_told_again_is_counted),
    };

    return cmocka_run_group_tests_name("controller/input", tests, NULL, NULL);
}
