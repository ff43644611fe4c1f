/* Watches. */
#include "kube/client_suite_impl.h"

#include <stdio.h>

static uint64_t version_now(struct suite *s)
{
    return suite_must(s, SUITE_RQ(s, .verb = KUBE_LIST, .kind = s->sandboxes))->version;
}

static struct object *create(struct suite *s, const char *name, const char *label)
{
    return suite_create(s, s->config_maps,
                        "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"l\":\"%s\"}}}", name, label);
}

static struct object *relabel(struct suite *s, const char *name, const char *label)
{
    struct object *o = suite_get(s, s->config_maps, name);
    char text[64];

    (void)snprintf(text, sizeof text, "{\"l\":\"%s\"}", label);
    o = suite_with(s, o, "metadata.labels", text);
    return suite_must(s, SUITE_RQ(s, .verb = KUBE_UPDATE, .kind = s->config_maps, .name = name,
                                  .object = o))
        ->object;
}

static void delete (struct suite *s, const char *name)
{
    (void)suite_must(s, SUITE_RQ(s, .verb = KUBE_DELETE, .kind = s->config_maps, .name = name));
}

#define WATCH(s, ...)                                                                              \
    suite_watch(s, &(struct kube_watch_spec){                                                      \
                       .kind = (s)->config_maps, .namespace = (s)->namespace, __VA_ARGS__ })

static void events_come_in_order(struct suite *s)
{
    struct seen *seen = WATCH(s, .labels = "l", .from_version = version_now(s));
    struct object *last;

    (void)create(s, "a", "1");
    (void)create(s, "b", "1");
    last = relabel(s, "a", "2");
    suite_sees(seen, "+a +b ~a ");
    assert_true(object_version(seen->last) == object_version(last));
    assert_true(seen->version == object_version(last));
    assert_string_equal(object_label(seen->last, "l"), "2");
    delete (s, "a");
    suite_sees(seen, "+a +b ~a -a ");
    assert_true(object_version(seen->last) > object_version(last));
    suite_stop(seen);
}

static void resumes_from_a_version(struct suite *s)
{
    struct object *a = create(s, "a", "1");
    struct seen *seen;

    (void)relabel(s, "a", "2");
    (void)create(s, "b", "1");
    delete (s, "a");
    seen = WATCH(s, .labels = "l", .from_version = object_version(a));
    suite_sees(seen, "~a +b -a ");
    suite_stop(seen);
}

static void only_its_namespace(struct suite *s)
{
    struct object *o =
        suite_object(s, s->config_maps, "{\"metadata\":{\"name\":\"x\",\"labels\":{\"l\":\"\"}}}");
    struct seen *seen = WATCH(s, .labels = "l", .from_version = version_now(s));
    struct kube_request rq = {
        .verb = KUBE_CREATE, .kind = s->config_maps, .namespace = "default", .object = o
    };

    (void)suite_must(s, &rq);
    rq = (struct kube_request){
        .verb = KUBE_DELETE, .kind = s->config_maps, .namespace = "default", .name = "x"
    };
    (void)suite_must(s, &rq);
    (void)create(s, "a", "1");
    suite_sees(seen, "+a ");
    suite_stop(seen);
}

/* To who selects, what begins to match comes, and what ceases to goes. */
static void enter_and_leave(struct suite *s)
{
    struct seen *seen = WATCH(s, .from_version = version_now(s), .labels = "l=in");
    struct object *last;

    (void)create(s, "a", "out");
    (void)create(s, "b", "in");
    (void)relabel(s, "a", "in");
    last = relabel(s, "b", "out");
    suite_sees(seen, "+b +a -b ");
    assert_string_equal(object_label(seen->last, "l"), "in"); /* as it was */
    assert_true(object_version(seen->last) == object_version(last));
    delete (s, "b"); /* had gone before */
    delete (s, "a");
    suite_sees(seen, "+b +a -b -a ");
    suite_stop(seen);
}

static void one_by_its_name(struct suite *s)
{
    struct seen *seen = WATCH(s, .from_version = version_now(s), .fields = "metadata.name=b");

    (void)create(s, "a", "1");
    (void)create(s, "b", "1");
    (void)relabel(s, "b", "2");
    suite_sees(seen, "+b ~b ");
    suite_stop(seen);
}

static void in_a_version(struct suite *s)
{
    struct seen *seen = suite_watch(s, &(struct kube_watch_spec){ .kind = s->sandboxes,
                                                                  .namespace = s->namespace,
                                                                  .version = "v1alpha1",
                                                                  .from_version = version_now(s) });

    (void)suite_create(
        s, s->sandboxes,
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"operatingMode\":\"Suspended\",\"podTemplate\":{"
        "\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"busybox\"}]}}}}");
    suite_sees(seen, "+a ");
    assert_string_equal(suite_text(s, seen->last, "spec.replicas"), "0");
    suite_stop(seen);
}

static void many_events(struct suite *s)
{
    struct seen *seen = WATCH(s, .labels = "l", .from_version = version_now(s));
    char wanted[1024] = "";
    size_t n = 0;

    for (int i = 0; i < 100; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "e%03d", i);
        (void)create(s, name, "1");
        n += (size_t)snprintf(wanted + n, sizeof wanted - n, "+%s ", name);
    }
    suite_sees(seen, wanted);
    suite_stop(seen);
}

static void bad_selector(struct suite *s)
{
    struct seen *seen = WATCH(s, .labels = "a=b=c");

    suite_until(s, &seen->is_over);
    assert_int_equal(seen->code, 400);
    assert_int_equal(seen->ends, 1);
}

/* Nothing is known of so long ago. */
static void too_old(struct suite *s)
{
    struct seen *seen =
        suite_watch(s, &(struct kube_watch_spec){ .kind = s->sandboxes, .from_version = 1 });

    suite_until(s, &seen->is_over);
    assert_int_equal(seen->code, 410);
}

static void stops_inside_an_event(struct suite *s)
{
    struct seen *seen = WATCH(s, .labels = "l", .from_version = version_now(s));

    seen->stop_after = 2;
    (void)create(s, "a", "1");
    (void)create(s, "b", "1");
    (void)create(s, "c", "1");
    suite_until(s, &seen->is_over);
    suite_turns(s);
    assert_string_equal(seen->text, "+a +b ");
    assert_int_equal(seen->code, 0);
    assert_int_equal(seen->ends, 1);
}

static void stopped_at_once(struct suite *s)
{
    struct seen *seen = WATCH(s, .labels = "l", .from_version = version_now(s));

    suite_stop(seen);
    (void)create(s, "a", "1");
    suite_turns(s);
    assert_string_equal(seen->text, "");
    assert_int_equal(seen->ends, 1);
}

const struct suite_row suite_watch_rows[] = {
    { "events come in order", events_come_in_order },
    { "a watch goes on from a version", resumes_from_a_version },
    { "a watch of one namespace", only_its_namespace },
    { "what begins or ceases to match comes or goes", enter_and_leave },
    { "a watch of one name", one_by_its_name },
    { "a watch in another version", in_a_version, true },
    { "many events are all told", many_events },
    { "a watch with a bad selector ends", bad_selector },
    { "a watch from the beginning of time", too_old },
    { "a watch that is stopped inside an event", stops_inside_an_event },
    { "a watch that is stopped at once", stopped_at_once },
    { 0 },
};
