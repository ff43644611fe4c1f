#include "controller/claim.h"

#include "controller/candidates.h"
#include "controller/stamps.h"
#include "controller/condition.h"
#include "controller/testobject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define A   "agents.x-k8s.io/"
#define NOW "2026-11-16T10:00:00Z"

static const char *const domains[] = { "sandbox.users.io", NULL };

static struct object *claim_of(const char *spec)
{
    return test_object(known_kinds()->claim,
                       "{'metadata':{'namespace':'n','name':'c','uid':'u1','resourceVersion':'7',"
                       "'generation':5},'spec':{%s}}",
                       spec);
}

static struct object *template_of(const char *spec)
{
    return test_object(known_kinds()->template, "{'metadata':{'name':'t'},'spec':{%s}}", spec);
}

/* TestSandboxClaimReconcile: what is rejected of additionalPodMetadata. */
static void additional_metadata_is_checked(void **state)
{
    static const struct {
        const char *name, *more, *want; /* NULL: fine */
    } cases[] = {
        { "nothing", "", NULL },
        { "a label of an allowed domain", "'labels':{'sandbox.users.io/a':'b'}", NULL },
        { "of a domain below it", "'labels':{'x.sandbox.users.io/a':'b'}", NULL },
        { "a label without a domain", "'labels':{'a':'b'}", "label \"a\": a domain prefix" },
        { "of another domain", "'labels':{'example.com/a':'b'}",
          "label \"example.com/a\": its domain is not among" },
        { "of a domain that only ends like it", "'labels':{'notsandbox.users.io/a':'b'}",
          "label \"notsandbox.users.io/a\": its domain is not among" },
        { "a value that is too long",
          "'labels':{'sandbox.users.io/a':"
          "'0123456789012345678901234567890123456789012345678901234567890123'}",
          "value of label \"sandbox.users.io/a\": must be no more than 63" },
        { "a value of the wrong form", "'labels':{'sandbox.users.io/a':'-'}",
          "value of label \"sandbox.users.io/a\": " },
        { "a bad key", "'labels':{'sandbox.users.io/-':'b'}", "label key" },
        { "the router's label", "'labels':{'app':'Sandbox-Router'}",
          "label \"app\": the value \"sandbox-router\" is the router's" },
        { "an annotation without a domain", "'annotations':{'a':'b'}", NULL },
        { "a reserved annotation", "'annotations':{'x.k8s.io/a':'b'}",
          "annotation \"x.k8s.io/a\": its domain is reserved" },
        { "ours", "'annotations':{'agents.x-k8s.io/a':'b'}",
          "annotation \"agents.x-k8s.io/a\": its domain is reserved" },
        { "safe-to-evict", "'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'x'}",
          NULL },
    };

    EACH(r, cases) {
        char spec[512];
        struct err e = { 0 };
        enum claim_fault fault;

        (void)snprintf(spec, sizeof spec, "'additionalPodMetadata':{%s}", r->more);
        fault = claim_check_metadata(claim_of(spec), domains, &e);
        if ((fault == CLAIM_METADATA) != (r->want != NULL) ||
            (r->want && (!strstr(e.msg, r->want) ||
                         strncmp(e.msg, "invalid additionalPodMetadata: ", 31) != 0)))
            fail_msg("%s: %d, %s", r->name, (int)fault, e.msg);
    }
    test_objects_free();
}

/* TestSandboxClaimReconcile: variables; TestCreateSandboxClaimVolumeClaimTemplatesSuccess and …Errors. */
static const struct row {
    const char *name, *claim, *template;
    enum claim_fault fault;
    const char *want; /* in the sandbox, or in the error */
} cold_rows[] = {
    { "no variables", "", "'podTemplate':{'spec':{'containers':[{'name':'a','envFrom':[{}]}]}}",
      CLAIM_FINE, "'containers':[{'name':'a','envFrom':[{}]}]" },
    { "not allowed", "'env':[{'name':'A','value':'1'}]",
      "'podTemplate':{'spec':{'containers':[{'name':'a'}]}}", CLAIM_ENV,
      "environment variable injection rejected: SandboxTemplate \"t\" does not allow it" },
    { "allowed: a new one in the first container", "'env':[{'name':'A','value':'1'}]",
      "'envVarsInjectionPolicy':'Allowed','podTemplate':{'spec':{'containers':[{'name':'a','env':[{"
      "'name':'B','value':'2'}]},{'name':'b'}]}}",
      CLAIM_FINE,
      "'containers':[{'name':'a','env':[{'name':'B','value':'2'},{'name':'A','value':'1'}]},{"
      "'name':'b'}]" },
    { "allowed: no override", "'env':[{'name':'A','value':'1'}]",
      "'envVarsInjectionPolicy':'Allowed','podTemplate':{'spec':{'containers':[{'name':'a','env':[{"
      "'name':'A','value':'2'}]}]}}",
      CLAIM_ERROR, "environment variable \"A\" is the template's" },
    { "allowed: not where variables come from elsewhere", "'env':[{'name':'A','value':'1'}]",
      "'envVarsInjectionPolicy':'Allowed','podTemplate':{'spec':{'containers':[{'name':'a',"
      "'envFrom':[{}]}]}}",
      CLAIM_ENV, "environment variable injection rejected: the container takes" },
    { "another container's envFrom is harmless", "'env':[{'name':'A','value':'1'}]",
      "'envVarsInjectionPolicy':'Allowed','podTemplate':{'spec':{'containers':[{'name':'a'},{'name'"
      ":'b','envFrom':[{}]}]}}",
      CLAIM_FINE, "{'name':'a','env':[{'name':'A','value':'1'}]}" },
    { "overrides: in its place, as a plain value", "'env':[{'name':'A','value':'1'}]",
      "'envVarsInjectionPolicy':'Overrides','podTemplate':{'spec':{'containers':[{'name':'a','env':"
      "[{'name':'A','valueFrom':{}},{'name':'B','value':'2'}]}]}}",
      CLAIM_FINE, "'env':[{'name':'A','value':'1'},{'name':'B','value':'2'}]" },
    { "a container by name, init containers too",
      "'env':[{'name':'A','value':'1','containerName':'i'}]",
      "'envVarsInjectionPolicy':'Allowed','podTemplate':{'spec':{'initContainers':[{'name':'i'}],"
      "'containers':[{'name':'a'}]}}",
      CLAIM_FINE, "'initContainers':[{'name':'i','env':[{'name':'A','value':'1'}]}]" },
    { "an unknown container", "'env':[{'name':'A','value':'1','containerName':'x'}]",
      "'envVarsInjectionPolicy':'Allowed','podTemplate':{'spec':{'containers':[{'name':'a'}]}}",
      CLAIM_ERROR, "container \"x\", which the template does not have" },
    { "volumes: the template's", "", "'volumeClaimTemplates':[{'metadata':{'name':'a'}}]",
      CLAIM_FINE, "'volumeClaimTemplates':[{'metadata':{'name':'a'}}]" },
    { "volumes: not allowed", "'volumeClaimTemplates':[{'metadata':{'name':'a'}}]", "",
      CLAIM_VOLUMES, "SandboxTemplate \"t\" does not allow volumeClaimTemplates of claims" },
    { "volumes: allowed, behind the template's",
      "'volumeClaimTemplates':[{'metadata':{'name':'b'}}]",
      "'volumeClaimTemplatesPolicy':'Allowed','volumeClaimTemplates':[{'metadata':{'name':'a'}}]",
      CLAIM_FINE, "'volumeClaimTemplates':[{'metadata':{'name':'a'}},{'metadata':{'name':'b'}}]" },
    { "volumes: no override", "'volumeClaimTemplates':[{'metadata':{'name':'a'}}]",
      "'volumeClaimTemplatesPolicy':'Allowed','volumeClaimTemplates':[{'metadata':{'name':'a'}}]",
      CLAIM_VOLUMES, "volumeClaimTemplate \"a\" is the template's" },
    { "volumes: overrides in place",
      "'volumeClaimTemplates':[{'metadata':{'name':'c'}},{'metadata':{'name':'a'},'spec':{'x':1}}]",
      "'volumeClaimTemplatesPolicy':'Overrides','volumeClaimTemplates':[{'metadata':{'name':'a'}},{"
      "'metadata':{'name':'b'}}]",
      CLAIM_FINE,
      "'volumeClaimTemplates':[{'metadata':{'name':'a'},'spec':{'x':1}},{'metadata':{'name':'b'}},{"
      "'metadata':{'name':'c'}}]" },
    { "volumes: two of a name in the claim",
      "'volumeClaimTemplates':[{'metadata':{'name':'a'}},{'metadata':{'name':'a'}}]",
      "'volumeClaimTemplatesPolicy':'Allowed'", CLAIM_VOLUMES,
      "the claim has two volumeClaimTemplates named \"a\"" },
    { "volumes: one without a name in the template", "", "'volumeClaimTemplates':[{'metadata':{}}]",
      CLAIM_VOLUMES, "a volumeClaimTemplate of the template has no name" },
    { "the claim says otherwise than the template",
      "'additionalPodMetadata':{'annotations':{'a':'1'}}",
      "'podTemplate':{'metadata':{'annotations':{'a':'2'}},'spec':{}}", CLAIM_ERROR,
      "additionalPodMetadata: \"a\" is set to another value by the template" },
};

static void cold_sandbox(void **state)
{
    EACH(r, cold_rows) {
        struct step step;
        struct err e = { 0 };
        enum claim_fault fault = claim_make_sandbox(claim_of(r->claim), template_of(r->template),
                                                    test_edit(), &step, &e);
        const char *text = fault ? e.msg : test_step(&step);

        if (fault != r->fault || !strstr(text, r->want))
            fail_msg("%s: %d, %s", r->name, (int)fault, text);
    }
    test_objects_free();
}

/* ---- adoption ---- */

static void adoption_is_one_locked_write(void **state)
{
    struct object *claim = claim_of("");
    struct object *template =
        template_of("'podTemplate':{'metadata':{'labels':{'l':'1'}},'spec':{}}");
    struct object *sandbox = test_object(
        known_kinds()->sandbox,
        "{'metadata':{'namespace':'n','name':'s','resourceVersion':'9','labels':{'" A
        "warm-pool-sandbox':'p','" A "sandbox-template-hash':'h','" A
        "sandbox-pod-template-hash':'h','" A "launch-type':'warm','" A
        "created-by':'controller','mine':'1'},'annotations':{'" A
        "pod-name':'old'},'ownerReferences':[{'kind':'SandboxWarmPool','uid':'p','controller':true}"
        "]},'spec':{'podTemplate':{'metadata':{'labels':{'" A "warm-pool-sandbox':'p','l':'1'},"
        "'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'true'}},'spec':{}}}}");
    struct step step;
    struct err e;

    assert_int_equal(claim_adopt(claim, template, sandbox, test_edit(), &step, &e), 0);
    test_same("adoption", "write", test_step(&step),
              "patch Sandbox n/s {'metadata':{'resourceVersion':'9','labels':{'" A
              "warm-pool-sandbox':null,'" A "sandbox-template-hash':null,'" A
              "sandbox-pod-template-hash':null,'" A "claim-uid':'u1','" A "created-by':null,'" A
              "sandbox-template-ref-hash':'f10c3da3'},'ownerReferences':[{'apiVersion':"
              "'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxClaim','name':'c','uid':'u1',"
              "'controller':true,'blockOwnerDeletion':true}],'annotations':{'" A
              "pod-name':'s'}},'spec':{'podTemplate':{'metadata':{'labels':{'" A
              "claim-uid':'u1','" A "sandbox-template-ref-hash':'f10c3da3','" A
              "warm-pool-sandbox':null},'annotations':{"
              "'cluster-autoscaler.kubernetes.io/safe-to-evict':null}}}}}");
    assert_int_equal(claim_adopt(claim, NULL, sandbox, test_edit(), &step, &e), 0);
    assert_non_null(strstr(test_step(&step), "safe-to-evict':null"));
    test_objects_free();
}

/* TestGetLaunchType, TestInitializeSandboxLaunchTypeLabel, TestInitializeSandboxLaunchTypeLabelRawPayload */
static void launch_type_is_said_once(void **state)
{
    static const struct {
        const char *name, *labels, *want;
    } cases[] = {
        { "says nothing", "",
          "patch Sandbox n/s {'metadata':{'resourceVersion':'9','labels':{'" A
          "launch-type':'warm'}}}" },
        { "says an empty text", "'" A "launch-type':''",
          "patch Sandbox n/s {'metadata':{'resourceVersion':'9','labels':{'" A
          "launch-type':'warm'}}}" },
        { "says otherwise", "'" A "launch-type':'cold'", "" },
        { "says so", "'" A "launch-type':'warm'", "" },
    };

    EACH(r, cases) {
        struct object *sandbox = test_object(known_kinds()->sandbox,
                                             "{'metadata':{'namespace':'n','name':'s',"
                                             "'resourceVersion':'9','labels':{%s}}}",
                                             r->labels);
        struct step step;
        struct err e;

        assert_int_equal(claim_follow(claim_of(""), NULL, sandbox, "warm", test_edit(), &step, &e),
                         0);
        test_same(r->name, "write", test_step(&step), r->want);
    }
    test_objects_free();
}

static void lock_and_unlock(void **state)
{
    struct object *claim = claim_of("");
    struct step step = claim_lock(
        claim, "s", &(struct timespec){ .tv_sec = 1794823200, .tv_nsec = 5 }, test_edit());

    test_same("lock", "write", test_step(&step),
              "patch SandboxClaim n/c {'metadata':{'resourceVersion':'7','annotations':{'" A
              "sandbox-name':'s','" A
              "controller-first-observed-at':'2026-11-16T10:00:00.000000005Z'}}}");
    assert_null(claim_assigned(claim));
    step = claim_lock(claim, "s", NULL, test_edit());
    test_same("lock without a time", "write", test_step(&step),
              "patch SandboxClaim n/c {'metadata':{'resourceVersion':'7','annotations':{'" A
              "sandbox-name':'s'}}}");
    claim =
        test_object(known_kinds()->claim,
                    "{'metadata':{'namespace':'n','name':'c','resourceVersion':'7','labels':{'" A
                    "sandbox-name':'old'}}}");
    assert_string_equal(claim_assigned(claim), "old");
    step = claim_lock(claim, "old", NULL, test_edit());
    test_same("from the older label", "write", test_step(&step),
              "patch SandboxClaim n/c {'metadata':{'resourceVersion':'7','annotations':{'" A
              "sandbox-name':'old'},'labels':{'" A "sandbox-name':null}}}");
    step = claim_unlock(claim, test_edit());
    test_same("unlock", "write", test_step(&step),
              "patch SandboxClaim n/c {'metadata':{'resourceVersion':'7','labels':{'" A
              "sandbox-name':null}}}");
    test_objects_free();
}

/* ---- status ---- */

static const char *ready_of(struct json_node *status)
{
    struct object *o = test_object(known_kinds()->claim, "{'status':%s}", test_text(status));
    const struct json *c = condition_find(object_at(o, "status.conditions"), "Ready");
    static char text[512];
    int64_t generation = 0;

    (void)json_i64(json_get(c, "observedGeneration"), &generation);
    (void)snprintf(text, sizeof text, "%lld %s %s %s", (long long)generation,
                   json_cstr(json_get(c, "status")), json_cstr(json_get(c, "reason")),
                   json_cstr(json_get(c, "message")));
    return text;
}

/* 7.9 of the contract; TestSandboxClaimReadyConditionUsesClaimGeneration */
static void claim_ready_condition(void **state)
{
    static const struct {
        const char *name, *sandbox;
        enum claim_fault fault;
        const char *text, *want;
    } cases[] = {
        { "copied", "'conditions':[{'type':'Ready','status':'True','reason':'R','message':'M'}]",
          CLAIM_FINE, "", "5 True R M" },
        { "none yet", "'conditions':[]", CLAIM_FINE, "",
          "5 False SandboxNotReady Sandbox is not ready" },
        { "expired by itself",
          "'conditions':[{'type':'Ready','status':'False','reason':'SandboxExpired'}]", CLAIM_FINE,
          "",
          "5 False SandboxExpired Underlying Sandbox resource has expired independently of the "
          "Claim." },
        { "missing", NULL, CLAIM_FINE, "", "5 False SandboxMissing Sandbox does not exist" },
        { "no template", NULL, CLAIM_NO_TEMPLATE, "x", "5 False TemplateNotFound x" },
        { "no pool", NULL, CLAIM_NO_POOL, "x", "5 False WarmPoolNotFound x" },
        { "conflict", NULL, CLAIM_CONFLICT, "x", "5 False AdoptionConflict x" },
        { "pending", NULL, CLAIM_PENDING, "x", "5 False SandboxCreatePending x" },
        { "metadata", NULL, CLAIM_METADATA, "x", "5 False InvalidMetadata x" },
        { "variables", NULL, CLAIM_ENV, "x", "5 False EnvVarsInjectionRejected x" },
        { "volumes", NULL, CLAIM_VOLUMES, "x", "5 False VolumeClaimTemplatesError x" },
        { "not its own", NULL, CLAIM_NOT_OWNED, "x", "5 False ReconcilerError Error seen: x" },
        { "anything else", NULL, CLAIM_ERROR, "x", "5 False ReconcilerError Error seen: x" },
    };

    EACH(r, cases) {
        struct object *sandbox =
            r->sandbox ? test_object(known_kinds()->sandbox,
                                     "{'metadata':{'name':'s'},'status':{%s}}", r->sandbox)
                       : NULL;
        struct claim_facts f = { claim_of(""), sandbox, r->fault, r->text, NOW };

        test_same(r->name, "condition", ready_of(claim_status(&f, test_edit())), r->want);
    }
    test_objects_free();
}

/* Of a sandbox that says "True R M", by what its Pod says of its address. */
static void claim_status_of_an_address(void **state)
{
#define UNHEARD "5 False DependenciesNotReady Pod is Ready but its ports are not listened on yet"
#define SAYS(reason)                                                                               \
    "'podIP':'127.64.0.1','conditions':[{'type':'silica.dev/PodAddresses','reason':'" reason "'}]"
    static const struct {
        const char *name, *pod, *note; /* pod NULL: it is not known */
        const char *claim;             /* its status */
        const char *want;
    } cases[] = {
        { "not asked for", "'podIP':'127.64.0.1'", "", "", "5 True R M" },
        { "asked for of a member", SAYS("NotClaimed"), "", "", UNHEARD },
        { "listens", SAYS("Listening"), "", "", "5 True R M" },
        { "another account has a port", SAYS("PortTakenByOthers"), "true", "",
          "5 False DependenciesNotReady Pod is Ready but a program of another account has one of its "
          "ports; its Events say which" },
        { "has told of a conflict", SAYS("PortTaken"), "true", "", "5 True R M" },
        { "asked for, and the node has not heard", "'podIP':'127.64.0.1'", "true", "", UNHEARD },
        { "another annotation", "'podIP':'127.64.0.1'", "false", "", "5 True R M" },
        { "of another node", "'podIP':'10.1.2.3'", "true", "", "5 True R M" },
        { "a Pod not known", NULL, "true", "", "5 True R M" },
        { "ready before", SAYS("NotClaimed"), "true",
          "'sandbox':{'name':'s'},'conditions':[{'type':'Ready','status':'True'}]", "5 True R M" },
        { "ready with another before", SAYS("NotClaimed"), "",
          "'sandbox':{'name':'t'},'conditions':[{'type':'Ready','status':'True'}]", UNHEARD },
    };

    (void)state;
    EACH(r, cases) {
        struct object *sandbox = test_object(
            known_kinds()->sandbox,
            "{'metadata':{'name':'s'},'spec':{'podTemplate':{'metadata':{'annotations':{"
            "'silica.dev/pod-addresses':'%s'}}}},'status':{'conditions':[{'type':'Ready','status':"
            "'True','reason':'R','message':'M'}]}}",
            r->note);
        struct object *claim =
            test_object(known_kinds()->claim,
                        "{'metadata':{'name':'c','generation':5},'status':{%s}}", r->claim);
        struct object *pod = r->pod ? test_object(known_kinds()->pod,
                                                  "{'metadata':{'name':'s'},'status':{%s}}", r->pod)
                                    : NULL;
        struct claim_facts f = {
            .claim = claim, .sandbox = sandbox, .text = "", .now = NOW, .pod = pod
        };

        test_same(r->name, "condition", ready_of(claim_status(&f, test_edit())), r->want);
    }
    test_objects_free();
}

/* A claim at generation 5, whose sandbox says "True R M". The public controller may have written the sandbox's generation. */
static void claim_status_of_another_generation(void **state)
{
    static const struct {
        const char *name, *generation, *reason;
        const char *want; /* the write, or "none" */
    } cases[] = {
        { "its own", "5", "R", "none" },
        { "ahead", "6", "R", "none" },
        { "behind", "4", "R", "5 True R M" },
        { "not a number", "'6'", "R", "5 True R M" },
        { "ahead, and of something else", "6", "Q", "5 True R M" },
    };
    struct object *sandbox = test_object(known_kinds()->sandbox,
                                         "{'metadata':{'name':'s'},'status':{'conditions':[{'type':"
                                         "'Ready','status':'True','reason':'R','message':'M'}]}}");

    EACH(r, cases) {
        struct object *claim = test_object(
            known_kinds()->claim,
            "{'metadata':{'name':'c','generation':5},'status':{'sandbox':{'name':'s'},"
            "'conditions':[{'type':'Ready','status':'True','observedGeneration':%s,'reason':'%s',"
            "'message':'M','lastTransitionTime':'t'}]}}",
            r->generation, r->reason);
        struct claim_facts f = { .claim = claim, .sandbox = sandbox, .text = "", .now = NOW };
        struct json_node *status = claim_status(&f, test_edit());
        struct step step = claim_status_step(claim, status, test_edit());

        test_same(r->name, "write", step.verb == STEP_NONE ? "none" : ready_of(status), r->want);
    }
    test_objects_free();
}

/* TestSandboxClaimReconcile_TransientLookupErrorPreservesStatus; TestCreateSandboxToleratesAlreadyExists */
static void claim_status_keeps_its_sandbox(void **state)
{
    struct object *claim = test_object(known_kinds()->claim,
                                       "{'metadata':{'name':'c'},'status':{'sandbox':{'name':'s'},"
                                       "'conditions':[{'type':'Ready','status':'True'}]}}");
    struct claim_facts f = { .claim = claim, .fault = CLAIM_ERROR, .text = "x", .now = NOW };

    assert_non_null(json_node_get(claim_status(&f, test_edit()), "sandbox"));
    f.fault = CLAIM_PENDING;
    test_same("pending", "status", test_text(claim_status(&f, test_edit())),
              "{'sandbox':{'name':'s'},'conditions':[{'type':'Ready','status':'True'}]}");
    f.fault = CLAIM_NOT_OWNED;
    assert_null(json_node_get(claim_status(&f, test_edit()), "sandbox"));
    f.fault = CLAIM_FINE;
    assert_null(json_node_get(claim_status(&f, test_edit()), "sandbox"));
    test_objects_free();
}

/* TestTimeLeft */
static void time_left(void **state)
{
    static const struct {
        const char *name, *lifecycle;
        bool is_finished, is_set, is_over;
        uint64_t wait_ms;
    } cases[] = {
        { "none", "", true, false, false, 0 },
        { "not finished yet", "'ttlSecondsAfterFinished':5", false, false, false, 0 },
        { "ttl", "'ttlSecondsAfterFinished':15", true, true, false, 5000 },
        { "ttl 0", "'ttlSecondsAfterFinished':0", true, true, true, 0 },
        { "the time is earlier",
          "'ttlSecondsAfterFinished':60,'shutdownTime':'2026-11-16T10:00:09Z'", true, true, false,
          9000 },
        { "the ttl is earlier",
          "'ttlSecondsAfterFinished':15,'shutdownTime':'2026-11-16T10:00:09Z'", true, true, false,
          5000 },
        { "past", "'shutdownTime':'2026-11-16T09:00:00Z'", false, true, true, 0 },
    };

    EACH(r, cases) {
        struct object *o = test_object(
            known_kinds()->claim,
            "{'spec':{'lifecycle':{%s}},'status':{'conditions':[{'type':'Finished','status':'%s',"
            "'lastTransitionTime':'2026-11-16T09:59:50Z'}]}}",
            r->lifecycle, r->is_finished ? "True" : "False");
        struct expiry got = claim_expiry(o, (struct timespec){ .tv_sec = 1794823200 });

        if (got.is_set != r->is_set || got.is_over != r->is_over || got.wait_ms != r->wait_ms)
            fail_msg("%s: set %d, over %d, wait %llu", r->name, got.is_set, got.is_over,
                     (unsigned long long)got.wait_ms);
    }
    test_objects_free();
}

/* ---- candidates ---- */

static struct object *member(const char *name, const char *pool, const char *status)
{
    return test_object(
        known_kinds()->sandbox,
        "{'metadata':{'namespace':'n','name':'%s','labels':{'" A "warm-pool-sandbox':'x','" A
        "sandbox-template-ref-hash':'y'},'ownerReferences':[{'apiVersion':"
        "'extensions.agents.x-k8s.io/v1alpha1','kind':'SandboxWarmPool','name':'%s','uid':'u',"
        "'controller':true}]},'status':{%s}}",
        name, pool, status);
}

static void no_wake(void *ctx, const char *namespace, const char *claim)
{
    (void)ctx;
    fail_msg("%s/%s did not wait", namespace, claim);
}

#define UP(node)                                                                                   \
    "'nodeName':'" node "','podIPs':['1.1.1.1'],'conditions':[{'type':'Ready','status':'True'}]"
#define NEARLY "'podIPs':['1.1.1.1']"

static void take_is(struct candidates *c, const char *pool, const char *want)
{
    const char *got = candidates_take(c, "n", pool);

    test_same(pool, "candidate", got, want);
}

/* TestSandboxClaimAdoptionStrategy, TestSimpleSandboxQueue_*, TestSynchronizedQueue_Deduplication */
static void candidates_in_their_order(void **state)
{
    struct candidates *c = candidates_new(no_wake, NULL);

    take_is(c, "p", NULL);
    candidates_see(c, member("late", "p", ""));
    candidates_see(c, member("nearly", "p", NEARLY));
    candidates_see(c, member("a", "p", UP("one")));
    candidates_see(c, member("b", "p", UP("two")));
    candidates_see(c, member("c", "p", UP("two")));
    candidates_see(c, member("other", "q", UP("two")));
    candidates_see(c, member("b", "p", UP("two"))); /* again: it keeps its place */
    assert_int_equal(candidates_pending(c, "n", "p"), 1);
    take_is(c, "p", "b"); /* the node with most, the oldest on it */
    candidates_see(c, member("b", "p", UP("two")));
    candidates_forget(c, "n", "a");
    take_is(c, "p", "c"); /* b is taken, whatever is seen of it */
    candidates_release(c, "n", "b", member("b", "p", UP("two")));
    take_is(c, "p", "b");
    take_is(c, "p", "nearly"); /* has an address at least */
    take_is(c, "p", NULL);
    take_is(c, "n/p", NULL);                   /* the name is the pool's, and nothing else */
    assert_null(candidates_take(c, "m", "q")); /* of another namespace */
    candidates_see(c, member("late", "p", UP("one")));
    assert_int_equal(candidates_pending(c, "n", "p"), 0);
    take_is(c, "p", "late");
    take_is(c, "q", "other");
    candidates_free(c);
    test_objects_free();
}

/* TestIsAdoptable_RejectsUnowned */
static void only_members_of_pools_are_candidates(void **state)
{
    struct candidates *c = candidates_new(no_wake, NULL);
    struct object *o = member("a", "p", UP("one"));

    assert_true(candidate_is_adoptable(o));
    candidates_see(c, o);
    candidates_see(c, test_object(known_kinds()->sandbox,
                                  "{'metadata':{'namespace':'n','name':'a','labels':{'" A
                                  "warm-pool-sandbox':'x','" A
                                  "sandbox-template-ref-hash':'y'},'ownerReferences':[{'apiVersion'"
                                  ":'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxClaim',"
                                  "'name':'c','uid':'u','controller':true}]}}"));
    take_is(c, "p", NULL); /* claimed */
    candidates_see(c,
                   test_object(known_kinds()->sandbox,
                               "{'metadata':{'namespace':'n','name':'b','labels':{'" A
                               "warm-pool-sandbox':'x','" A "sandbox-template-ref-hash':'y'}}}"));
    take_is(c, "p", NULL);
    candidates_free(c);
    test_objects_free();
}

static void write_down(void *ctx, const char *namespace, const char *claim)
{
    struct buf *woken = ctx;
    struct err e;

    assert_int_equal(buf_addf(woken, &e, "%s/%s ", namespace, claim), 0);
}

/* A claim that waits for a member is told when there is one: first come, first served, one for each member. */
static void claims_that_wait_are_woken(void **state)
{
    OWN(buf_done) struct buf woken = BUF_INIT(1024);
    struct candidates *c = candidates_new(write_down, &woken);

    candidates_wait(c, "n", "p", "nobody"); /* there is nothing to wait for */
    for (char name[] = "a"; name[0] < 'e'; name[0]++)
        candidates_see(c, member(name, "p", ""));
    for (char name[] = "1"; name[0] < '6'; name[0]++)
        candidates_wait(c, "n", "p", name);
    candidates_wait(c, "n", "p", "2"); /* again: it keeps its place */
    candidates_unwait(c, "n", "1");
    candidates_unwait(c, "n", "unknown");
    candidates_see(c, member("a", "p", NEARLY));
    assert_string_equal(buf_cstr(&woken), "n/2 ");
    candidates_see(c, member("a", "p", NEARLY)); /* nothing new */
    assert_string_equal(buf_cstr(&woken), "n/2 ");
    take_is(c, "p", "a");
    candidates_release(c, "n", "a", member("a", "p", NEARLY));
    assert_string_equal(buf_cstr(&woken), "n/2 n/3 ");
    candidates_see(c, member("x", "q", UP("one"))); /* another pool's */
    assert_string_equal(buf_cstr(&woken), "n/2 n/3 ");
    for (char name[] = "a"; name[0] < 'e'; name[0]++)
        candidates_forget(c, "n", name); /* none is left to wait for */
    assert_string_equal(buf_cstr(&woken), "n/2 n/3 n/4 n/5 ");
    candidates_free(c);
    test_objects_free();
}

/* A time that waits to be noted is the claim's own, not that of another which has its name now. */
static void stamps_belong_to_their_claims(void **state)
{
    static const char text[] = "{'metadata':{'namespace':'n','name':'c','uid':'%s'}}";
    struct object *first = test_object(known_kinds()->claim, text, "1");
    struct object *second = test_object(known_kinds()->claim, text, "2");
    struct stamps *s = stamps_new();
    struct timespec t = { 0 };

    assert_false(stamps_get(s, first, &t));
    stamps_put(s, first, (struct timespec){ .tv_sec = 7 });
    assert_true(stamps_get(s, first, &t));
    assert_int_equal(t.tv_sec, 7);
    assert_false(stamps_get(s, second, &t));
    stamps_put(s, second, (struct timespec){ .tv_sec = 8 });
    assert_false(stamps_get(s, first, &t));
    stamps_drop(s, "n", "c");
    stamps_drop(s, "n", "c");
    assert_false(stamps_get(s, second, &t));
    stamps_put(s, second, t);
    stamps_free(s);
    test_objects_free();
}

static void thousands_of_candidates(void **state)
{
    struct candidates *c = candidates_new(no_wake, NULL);
    char name[16];

    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        candidates_see(c, member(name, "p", UP("one")));
    }
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        take_is(c, "p", name);
        candidates_forget(c, "n", name);
    }
    take_is(c, "p", NULL);
    candidates_free(c);
    test_objects_free();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(additional_metadata_is_checked),
        cmocka_unit_test(cold_sandbox),
        cmocka_unit_test(adoption_is_one_locked_write),
        cmocka_unit_test(launch_type_is_said_once),
        cmocka_unit_test(lock_and_unlock),
        cmocka_unit_test(claim_ready_condition),
        cmocka_unit_test(claim_status_of_an_address),
        cmocka_unit_test(claim_status_of_another_generation),
        cmocka_unit_test(claim_status_keeps_its_sandbox),
        cmocka_unit_test(time_left),
        cmocka_unit_test(candidates_in_their_order),
        cmocka_unit_test(only_members_of_pools_are_candidates),
        cmocka_unit_test(claims_that_wait_are_woken),
        cmocka_unit_test(stamps_belong_to_their_claims),
        cmocka_unit_test(thousands_of_candidates),
    };

    return cmocka_run_group_tests_name("controller/claim", tests, NULL, NULL);
}
