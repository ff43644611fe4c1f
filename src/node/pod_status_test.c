/* What a Pod's status says, in the kubelet's words. */
#include "node/pod_status.h"

#include "kube/kind.h"
#include "node/testpod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define POD                                                                                                                    \
    "{'metadata':{'name':'p','namespace':'n','uid':'00000000-0000-4000-8000-000000000001'},'spec':{'containers':[{'name':'c'," \
    "'image':'python:3.11'}]},'status':%s}"

static const char *id_of(void *ctx, const char *image)
{
    (void)ctx;
    return strcmp(image, "python:3.11") == 0 ? "host" : "";
}

/* The patch as JSON with single quotes; "" when there is nothing to write. */
static const char *patch(struct object *pod, const struct life_pod *life, const char *message)
{
    static struct buf text = BUF_INIT(1 << 16);
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    const struct pod_status_spec s = { .pod = pod,
                                       .life = life,
                                       .ip = "127.64.0.1",
                                       .host_ip = "127.0.0.1",
                                       .message = message,
                                       .image_id = id_of,
                                       .now = 1794822600 };
    struct json_node *node = pod_status_patch(&s, ed);
    struct err e;

    buf_clear(&text);
    if (node)
        assert_int_equal(json_node_write(node, &text, &e), 0);
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '"')
            text.p[i] = '\'';
    return buf_cstr(&text);
}

static struct object *pod_with(const char *status)
{
    char text[20000];

    (void)snprintf(text, sizeof text, POD, status);
    return testpod_object("pods", text);
}

static void expect(const char *got, const char *part)
{
    if (!strstr(got, part))
        fail_msg("no %s in %s", part, got);
}

static void test_a_container_that_runs(void **state)
{
    struct life_container c = { .name = "c", .is_ready = true, .is_started = true };
    struct life_pod life = { .v = &c, .n = 1 };
    OWN_MEM char *said = NULL;
    char whole[16384];

    (void)state;
    c.now = (struct life_run){ .state = RUN_UP, .has_box = true, .began_ms = 1794822599000 };
    said = own_strdup(patch(pod_with("{}"), &life, NULL));
    expect(said, "'phase':'Running'");
    expect(said, "{'type':'Ready','status':'True',");
    expect(said, "{'type':'PodScheduled','status':'True',");
    expect(said, "'podIP':'127.64.0.1','podIPs':[{'ip':'127.64.0.1'}]");
    expect(said, "'hostIP':'127.0.0.1'");
    expect(said, "'startTime':'2026-11-16T");
    expect(said, "'containerStatuses':[{'name':'c','state':{'running':{'startedAt':'2026-11-16T");
    expect(said,
           "'lastState':{},'ready':true,'restartCount':0,'image':'python:3.11','imageID':'host',"
           "'containerID':'silica://00000000-0000-4000-8000-000000000001_c_0','started':true}]");
    /* What is so already is not written again. */
    (void)snprintf(whole, sizeof whole, "%s", said);
    assert_string_equal(patch(pod_with(whole), &life, NULL), "");
    c.is_ready = false;
    said[0] = '\0';
    expect(patch(pod_with(whole), &life, NULL), "containers with unready status: [c]");
    assert_null(strstr(patch(pod_with(whole), &life, NULL), "podIP"));
    testpod_free();
}

static void test_one_that_crashes(void **state)
{
    struct life_container c = { .name = "c", .crashes = 2 };
    struct life_pod life = { .v = &c, .n = 1 };
    const char *said;

    (void)state;
    c.now = (struct life_run){ .attempt = 1, .began_ms = 1794822590000 };
    life_end(&c, 7, 1794822591000);
    said = patch(pod_with("{}"), &life, NULL);
    expect(said,
           "'state':{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 20s restarting "
           "failed container=c pod=p_n(00000000-0000-4000-8000-000000000001)'}}");
    expect(said, "'lastState':{'terminated':{'exitCode':7,'reason':'Error','startedAt':");
    expect(said, "'restartCount':1");
    expect(said, "'phase':'Running'");
    c.crashes = 5;
    expect(patch(pod_with("{}"), &life, NULL), "back-off 1m20s restarting");
    testpod_free();
}

static void test_one_that_cannot_start(void **state)
{
    struct life_container c = { .name = "c",
                                .wait_reason = "ErrImagePull",
                                .wait_message = "no such image" };
    struct life_pod life = { .v = &c, .n = 1 };
    const char *said = patch(pod_with("{}"), &life, NULL);

    (void)state;
    expect(said, "'phase':'Pending'");
    expect(said, "'state':{'waiting':{'reason':'ErrImagePull','message':'no such image'}}");
    expect(said, "'imageID':'','started':false}");
    testpod_free();
}

static void test_the_end(void **state)
{
    struct life_container c = { .name = "c" };
    struct life_pod life = { .v = &c, .n = 1, .policy = LIFE_NEVER };
    const char *said;

    (void)state;
    c.now = (struct life_run){ .state = RUN_OVER, .has_box = true, .began_ms = 1794822590000 };
    life_end(&c, 0, 1794822591000);
    said = patch(pod_with("{'conditions':[{'type':'Mine','status':'True'}]}"), &life, NULL);
    expect(said, "'phase':'Succeeded'");
    expect(said, "'reason':'PodCompleted'");
    expect(said, "{'type':'Mine','status':'True'}"); /* others' conditions stay */
    life.failed = "SandboxLost";
    said = patch(pod_with("{}"), &life, "its keeper was killed");
    expect(said, "'phase':'Failed','reason':'SandboxLost','message':'its keeper was killed'");
    testpod_free();
}

static void test_when_a_condition_changed(void **state)
{
    struct life_container c = { .name = "c" };
    struct life_pod life = { .v = &c, .n = 1 };
    const char *said =
        patch(pod_with("{'conditions':[{'type':'PodScheduled','status':'True',"
                       "'lastTransitionTime':'2020-01-01T00:00:00Z'},{'type':'Ready',"
                       "'status':'True','lastTransitionTime':'2020-01-01T00:00:00Z'}]}"),
              &life, NULL);

    (void)state;
    expect(said, "{'type':'PodScheduled','status':'True','lastProbeTime':null,"
                 "'lastTransitionTime':'2020-01-01T00:00:00Z'}");
    expect(said,
           "{'type':'Ready','status':'False','lastProbeTime':null,'lastTransitionTime':'2026-");
    testpod_free();
}

/* The condition that claims wait for: there while something asks for the address, and never anybody else's. */
static void test_addresses(void **state)
{
    static const char old[] = "{'conditions':[{'type':'silica.dev/PodAddresses','status':'True',"
                              "'reason':'Listening'},{'type':'x.io/theirs','status':'True'}]}";
    struct life_container c = { .name = "c", .is_ready = true, .is_started = true };
    struct life_pod life = { .v = &c, .n = 1 };
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct pod_status_spec s = { .life = &life, .ip = "127.64.0.1", .host_ip = "127.0.0.1" };
    static const struct row {
        const char *name, *reason, *status;
    } rows[] = {
        { "not asked for", NULL, NULL },
        { "listens", "Listening", "True" },
        { "waits in a pool", "NotClaimed", "False" },
        { "taken", "PortTaken", "False" },
        { "taken by a stranger", "PortTakenByOthers", "False" },
    };

    (void)state;
    c.now = (struct life_run){ .state = RUN_UP, .has_box = true };
    s.pod = pod_with(old);
    EACH(r, rows) {
        struct json_node *list, *found = NULL;

        s.ports_reason = r->reason;
        list = json_node_get(pod_status_patch(&s, ed), "conditions");
        for (size_t i = 0; i < json_node_count(list); i++)
            if (span_is(json_node_str(json_node_get(json_node_at(list, i), "type")),
                        POD_STATUS_ADDRESSES))
                found = json_node_at(list, i);
        if (!!found != !!r->reason ||
            (found && (!span_is(json_node_str(json_node_get(found, "reason")), r->reason) ||
                       !span_is(json_node_str(json_node_get(found, "status")), r->status))))
            fail_msg("%s", r->name);
        assert_true(json_node_count(list) == (r->reason ? 7 : 6)); /* theirs stays */
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_container_that_runs),    cmocka_unit_test(test_one_that_crashes),
        cmocka_unit_test(test_one_that_cannot_start),    cmocka_unit_test(test_the_end),
        cmocka_unit_test(test_when_a_condition_changed), cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
