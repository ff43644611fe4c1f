#include "node/security.h"

#include "node/testpod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
    const char *name;
    const char *pod;       /* spec.securityContext */
    const char *container; /* members of the second container */
    const char *want;      /* "uid:gid files=user:group", '-' for none; or the error */
    bool has_ids;
    bool is_error;
    const char *note; /* a part of the only one */
} rows[] = {
    { "root", "{}", "'x':1", "0:0 files=-:-", true },
    { "the Pod's", "{'runAsUser':1000}", "'x':1", "1000:1000 files=1000:-", true },
    { "the container's wins", "{'runAsUser':1000,'runAsGroup':7}",
      "'securityContext':{'runAsUser':5}", "5:7 files=5:-", true },
    { "files of a group", "{'runAsUser':1000,'fsGroup':2000}", "'x':1", "1000:2000 files=1000:2000",
      true },
    { "files of a group that it is not in", "{'runAsUser':1,'runAsGroup':3,'fsGroup':2000}",
      "'x':1", "1:3+2000 files=1:2000", true },
    { "more groups", "{'runAsUser':1,'supplementalGroups':[5,6,5],'fsGroup':9}", "'x':1",
      "1:9+5+6 files=1:9", true },
    { "a group too large", "{'supplementalGroups':[70000]}", "'x':1",
      "supplementalGroups 70000: a sandbox has the ids 0 to 65535", true, true },
    { "no group to give", "{'supplementalGroups':[5]}", "'x':1", "0:0 files=-:-", false, false,
      "container \"second\" is in no group but its own: this account has one id to give" },
    { "an id too large", "{'runAsUser':1000680000}", "'x':1",
      "runAsUser 1000680000: a sandbox has the ids 0 to 65535", true, true },
    { "must not be root", "{'runAsNonRoot':true}", "'x':1",
      "container has runAsNonRoot and image will run as root (pod: \"p_n(u)\", container: second)",
      true, true },
    { "says that it is root", "{'runAsNonRoot':true}", "'securityContext':{'runAsUser':0}",
      "container's runAsUser breaks non-root policy (pod: \"p_n(u)\", container: second)", true,
      true },
    { "is not root", "{'runAsNonRoot':true,'runAsUser':9}", "'x':1", "9:9 files=9:-", true },
    { "one id for all", "{'runAsUser':1000}", "'x':1", "1000:1000 files=-:-", false },
    { "a second id", "{'runAsUser':1000}", "'securityContext':{'runAsUser':7}",
      "1000:1000 files=-:-", false, false,
      "container \"second\" runs as 1000:1000, not as 7:7: this account has one id to give" },
    { "all is dropped already", "{'seccompProfile':{'type':'RuntimeDefault'}}",
      "'securityContext':{'capabilities':{'drop':['ALL']},'allowPrivilegeEscalation':false,"
      "'privileged':false}",
      "0:0 files=-:-", true },
    { "a processor of another kind", "{}",
      "'resources':{'limits':{'example.com/gpu':1},'requests':{'example.com/gpu':1}}",
      "0:0 files=-:-", true, false, "this node has no example.com/gpu to give" },
};

static struct object *pod_of(const char *context, const char *container)
{
    OWN_MEM char *text = NULL;

    assert_true(
        asprintf(&text,
                 "{'metadata':{'name':'p','namespace':'n','uid':'u'},'spec':{"
                 "'securityContext':%s,'containers':[{'name':'first'},{'name':'second',%s}]}}",
                 context, container) > 0);
    return testpod_object("pods", text);
}

static void name_id(char ret[16], bool has_id, uint32_t id)
{
    (void)snprintf(ret, 16, has_id ? "%u" : "-", id);
}

static void check(const struct row *r)
{
    struct object *pod = pod_of(r->pod, r->container);
    OWN(notes_done) struct notes notes = { 0 };
    char got[128], user[16], group[16];
    struct security s;
    struct err e;
    int n, rc = security_make(pod, json_at(object_at(pod, "spec.containers"), 1), r->has_ids, &s,
                              &notes, &e);

    if (rc == 0) {
        name_id(user, s.owner.has_user, s.owner.user);
        name_id(group, s.owner.has_group, s.owner.group);
        n = snprintf(got, sizeof got, "%u:%u", s.uid, s.gid);
        for (size_t i = 0; i < s.group_count; i++)
            n += snprintf(got + n, sizeof got - (size_t)n, "+%u", s.groups[i]);
        (void)snprintf(got + n, sizeof got - (size_t)n, " files=%s:%s", user, group);
    }
    if (strcmp(rc < 0 ? e.msg : got, r->want) != 0 || (rc < 0) != r->is_error)
        fail_msg("%s: '%s', not '%s'", r->name, rc < 0 ? e.msg : got, r->want);
    if (notes.n != (r->note != NULL) || (r->note && !strstr(notes.v[0].message, r->note)))
        fail_msg("%s: %zu notes: '%s'", r->name, notes.n, notes.n ? notes.v[0].message : "");
}

static void contexts(void **state)
{
    (void)state;
    EACH(r, rows)
        check(r);
    testpod_free();
}

static void limits(void **state)
{
    struct object *pod = pod_of(
        "{}", "'securityContext':{'readOnlyRootFilesystem':true},'resources':{'limits':"
              "{'cpu':'1.5','memory':'64Mi','ephemeral-storage':'1k'},'requests':{'cpu':'1'}}");
    OWN(notes_done) struct notes notes = { 0 };
    struct security s;
    struct err e;

    (void)state;
    assert_int_equal(
        security_make(pod, json_at(object_at(pod, "spec.containers"), 1), true, &s, &notes, &e), 0);
    assert_true(s.is_read_only);
    assert_true(s.limits.cpu_milli == 1500 && s.limits.memory_bytes == 64 << 20 &&
                s.root_bytes == 1000 && !s.limits.pids);
    assert_int_equal(
        security_make(pod, json_at(object_at(pod, "spec.containers"), 0), true, &s, &notes, &e), 0);
    assert_true(!s.is_read_only && !s.limits.cpu_milli && !s.limits.memory_bytes && !s.root_bytes);
    assert_int_equal(notes.n, 0);
    testpod_free();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(contexts), cmocka_unit_test(limits) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
