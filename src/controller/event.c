#include "controller/event.h"

#include "base/log.h"
#include "controller/limits.h"
#include "controller/names.h"
#include "kube/time.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void put_regarding(struct json_node *body, const struct object *o)
{
    const struct kind *kind = object_kind(o);
    struct json_node *to = tree_object(body, "regarding");

    tree_text(to, "apiVersion", kind_api_version(kind, &kind->versions[0]));
    tree_text(to, "kind", kind->name);
    tree_text(to, "namespace", object_namespace(o));
    tree_text(to, "name", object_name(o));
    tree_text(to, "uid", object_uid(o));
}

/* Cut between characters. */
static void put_note(struct json_node *body, const char *note)
{
    size_t n = strlen(note);

    if (n > EVENT_NOTE_MAX_BYTES) {
        n = EVENT_NOTE_MAX_BYTES;
        while (n && ((unsigned char)note[n] & 0xc0) == 0x80)
            n--;
    }
    json_node_set(body, "note", json_edit_str(json_node_edit(body), span_of(note, n)));
}

/* As client-go says it: which controller, on which host. */
static const char *instance(const char *controller)
{
    static char text[128]; /* the API takes no more */
    char host[HOST_NAME_MAX + 1] = "";

    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(text, sizeof text, "%s-%s", controller, host);
    return text;
}

struct step event_step(const struct event *event, struct timespec now, struct json_edit *ed)
{
    const struct object *o = event->about;
    char name[320], time[TIME_TEXT_BYTES];
    struct step step;

    /* As client-go names them: the object, and the moment in hexadecimal nanoseconds. */
    (void)snprintf(name, sizeof name, "%.253s.%llx", object_name(o),
                   (unsigned long long)now.tv_sec * 1000000000ull +
                       (unsigned long long)now.tv_nsec);
    step = step_create(ed, known_kinds()->event, object_namespace(o), NULL);
    tree_text(tree_object(step.body, "metadata"), "name",
              (const char *)json_edit_text(ed, span_cstr(name)).p);
    tree_text(step.body, "eventTime", kube_microtime_text(time, now));
    tree_text(step.body, "reportingController", event->controller);
    tree_text(step.body, "reportingInstance", instance(event->controller));
    tree_text(step.body, "type", event->is_warning ? "Warning" : "Normal");
    tree_text(step.body, "reason", event->reason);
    tree_text(step.body, "action", event->action);
    put_note(step.body, event->note);
    put_regarding(step.body, o);
    return step;
}

static void on_written(void *ctx, const struct kube_answer *answer)
{
    (void)ctx;
    if (answer->refusal && answer->refusal->code)
        log_warn("event.write", KV("err", buf_cstr(&answer->refusal->message)));
}

void event_emit(struct kube_client *client, const struct event *event)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(PASS_MAX_BYTES);
    struct kube_call *call;
    struct timespec now;
    struct step step;
    struct err e;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    step = event_step(event, now, ed);
    if (step_start(client, &step, event->controller, on_written, NULL, &call, &e) < 0)
        log_warn("event.write", KV("err", &e));
}
