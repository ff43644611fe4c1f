#include "node/volumes.h"

#include "base/scratch.h"
#include "node/dirtree.h"
#include "node/testpod.h"
#include "node/volume_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define HEAD "{'metadata':{'name':'p','namespace':'n','uid':'u1','labels':{'a':'1'}},'spec':{"
#define MAP(data)                                                                                  \
    "configmaps {'metadata':{'name':'cm','namespace':'n'},'data':{" data "},'binaryData':"         \
    "{'raw':'AAH/'}}"
#define CLAIM                                                                                      \
    "persistentvolumeclaims {'metadata':{'name':'disk','namespace':'n','uid':'c9'},'spec':{}}"
#define AT(rest) "pods/u1/volumes/" rest

static const char *const objects[] = {
    MAP("'k1':'one','k2':'two'"),
    "secrets {'metadata':{'name':'s','namespace':'n'},'data':{'pass':'c2VjcmV0'}}",
    CLAIM,
    NULL,
};

static struct scratch dir;

static int set_up(void **state)
{
    (void)state;
    scratch_make(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&dir);
    testpod_free();
    return 0;
}

static struct volumes_spec spec_of(const char *rest, const char *const *given)
{
    OWN_MEM char *text = NULL;
    struct object *pod;

    assert_true(asprintf(&text, HEAD "%s}}", rest) > 0);
    pod = testpod_object("pods", text);
    return (struct volumes_spec){ .dir_fd = dir.fd,
                                  .dir = dir.path,
                                  .downward = { .pod = pod },
                                  .needs = testpod_needs(pod, given) };
}

static bool prepare(const struct volumes_spec *s, struct notes *notes)
{
    OWN(notes_done) struct notes own = { 0 };
    bool changed;
    struct err e;

    if (volumes_prepare(s, &changed, notes ? notes : &own, &e) < 0)
        fail_msg("%s", e.msg);
    return changed;
}

static void objects_become_files(void **state)
{
    struct volumes_spec s = spec_of(
        "'volumes':["
        "{'name':'all','configMap':{'name':'cm','defaultMode':420}},"
        "{'name':'some','configMap':{'name':'cm','items':[{'key':'k2','path':'deep/er/f','mode':256}]}},"
        "{'name':'sec','secret':{'secretName':'s','defaultMode':256}},"
        "{'name':'opt','secret':{'secretName':'none','optional':true}},"
        "{'name':'down','downwardAPI':{'items':[{'path':'labels','fieldRef':{'fieldPath':"
        "'metadata.labels'}}]}},"
        "{'name':'mix','projected':{'defaultMode':288,'sources':["
        "{'serviceAccountToken':{'path':'token','audience':'me'}},"
        "{'configMap':{'name':'cm','items':[{'key':'k1','path':'ca.crt'}]}},"
        "{'secret':{'name':'s'}},"
        "{'downwardAPI':{'items':[{'path':'ns','fieldRef':{'fieldPath':'metadata.namespace'}}]}}]}}]",
        objects);

    (void)state;
    assert_true(prepare(&s, NULL));
    assert_string_equal(scratch_read(&dir, AT("all/k1")), "one");
    assert_string_equal(scratch_read(&dir, AT("all/k2")), "two");
    assert_int_equal(scratch_mode(&dir, AT("all/..data/k1")), 0644);
    assert_true(scratch_has(&dir, AT("all/raw")));
    assert_string_equal(scratch_read(&dir, AT("some/deep/er/f")), "two");
    assert_int_equal(scratch_mode(&dir, AT("some/deep/er/f")), 0400);
    assert_false(scratch_has(&dir, AT("some/k1")));
    assert_string_equal(scratch_read(&dir, AT("sec/pass")), "secret");
    assert_int_equal(scratch_mode(&dir, AT("sec/..data/pass")), 0400);
    assert_int_equal(scratch_count(&dir, AT("opt")), 2); /* ..data and what it leads to */
    assert_string_equal(scratch_read(&dir, AT("down/labels")), "a=\"1\"");
    assert_string_equal(scratch_read(&dir, AT("mix/token")), "token-me");
    assert_int_equal(scratch_mode(&dir, AT("mix/..data/token")), 0440);
    assert_string_equal(scratch_read(&dir, AT("mix/ca.crt")), "one");
    assert_string_equal(scratch_read(&dir, AT("mix/pass")), "secret");
    assert_string_equal(scratch_read(&dir, AT("mix/ns")), "n");
    assert_int_equal(scratch_mode(&dir, "pods"), 0700);
    assert_false(prepare(&s, NULL));
}

static void changes_come_at_once(void **state)
{
    static const char *const later[] = { MAP("'k2':'zwei','k3':'drei'"), NULL };
    static const char volumes[] = "'volumes':[{'name':'v','configMap':{'name':'cm'}}]";
    struct volumes_spec s = spec_of(volumes, objects);
    OWN_FD int old = -1;
    char text[8] = "";

    (void)state;
    prepare(&s, NULL);
    old = openat(dir.fd, AT("v/k2"), O_RDONLY | O_CLOEXEC);
    assert_true(old >= 0);
    /* Left by a writer that was killed: a version nobody reads, half a switch, a link too few. */
    scratch_dir(&dir, AT("v/..2020_01_01_00_00_00.0"));
    scratch_link(&dir, AT("v/..data_tmp"), "..2020_01_01_00_00_00.0");
    assert_int_equal(unlinkat(dir.fd, AT("v/k1"), 0), 0);
    assert_false(prepare(&s, NULL));
    assert_int_equal(scratch_count(&dir, AT("v")), 5); /* three keys, ..data, its directory */
    assert_string_equal(scratch_read(&dir, AT("v/k1")), "one");
    s = spec_of(volumes, later);
    assert_true(prepare(&s, NULL));
    assert_string_equal(scratch_read(&dir, AT("v/k2")), "zwei");
    assert_string_equal(scratch_read(&dir, AT("v/k3")), "drei");
    assert_false(scratch_has(&dir, AT("v/k1")));
    assert_int_equal(scratch_count(&dir, AT("v")), 5);
    assert_int_equal(read(old, text, sizeof text - 1), 3); /* who has a file open keeps it */
    assert_string_equal(text, "two");
}

static const struct bad_row {
    const char *name, *volume;
    const char *want;
    enum err_code code;
} bad_rows[] = {
    { "no map", "'configMap':{'name':'none'}", "configmap \"none\" not found", ERR_NOT_FOUND },
    { "no secret", "'secret':{'secretName':'none'}", "secret \"none\" not found", ERR_NOT_FOUND },
    { "no key", "'configMap':{'name':'cm','items':[{'key':'x','path':'x'}]}",
      "references non-existent config key: x", ERR_NOT_FOUND },
    { "no claim", "'persistentVolumeClaim':{'claimName':'none'}",
      "persistentvolumeclaim \"none\" not found", ERR_NOT_FOUND },
    { "the host's files", "'hostPath':{'path':'/etc'}",
      "hostPath is refused: a Pod sees nothing of this machine's files but its image",
      ERR_UNSUPPORTED },
    { "another kind", "'nfs':{'server':'x'}", "nfs volumes are not served here", ERR_UNSUPPORTED },
    { "huge pages", "'emptyDir':{'medium':'HugePages'}", "medium HugePages is not served here",
      ERR_UNSUPPORTED },
    { "upwards", "'configMap':{'name':'cm','items':[{'key':'k1','path':'../x'}]}",
      "'../x' cannot be a file's path in a volume", ERR_INVALID },
    { "absolute", "'configMap':{'name':'cm','items':[{'key':'k1','path':'/x'}]}",
      "'/x' cannot be a file's path in a volume", ERR_INVALID },
    { "ours", "'configMap':{'name':'cm','items':[{'key':'k1','path':'..data'}]}",
      "'..data' cannot be a file's path in a volume", ERR_INVALID },
};

static void what_cannot_be(void **state)
{
    (void)state;
    EACH(r, bad_rows) {
        OWN(notes_done) struct notes notes = { 0 };
        OWN_MEM char *text = NULL, *want = NULL;
        struct volumes_spec s;
        struct err e;

        assert_true(asprintf(&text, "'volumes':[{'name':'v',%s}]", r->volume) > 0);
        assert_true(asprintf(&want, "MountVolume.SetUp failed for volume \"v\" : %s", r->want) > 0);
        s = spec_of(text, objects);
        assert_int_equal(volumes_prepare(&s, NULL, &notes, &e), -1);
        if (strcmp(e.msg, want) != 0 || e.code != r->code)
            fail_msg("%s: '%s' (%d), not '%s'", r->name, e.msg, e.code, want);
    }
}

static void made_counted_removed(void **state)
{
    struct volumes_spec s =
        spec_of("'volumes':[{'name':'tmp','emptyDir':{'sizeLimit':'8Ki','medium':'Memory'}},"
                "{'name':'d','persistentVolumeClaim':{'claimName':'disk'}}]",
                objects);
    OWN(notes_done) struct notes notes = { 0 };
    char large[16384];
    struct volumes_use use;
    struct err e;

    (void)state;
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    prepare(&s, &notes);
    assert_int_equal(notes.n, 1);
    assert_string_equal(notes.v[0].message,
                        "volume \"tmp\": medium Memory is not to be had here: it is on disk");
    assert_int_equal(scratch_mode(&dir, AT("tmp")), 0777);
    scratch_file(&dir, "claims/n/disk.c9/kept", large);
    assert_int_equal(volumes_measure(&s, &use, &e), 0);
    assert_false(use.is_over);
    scratch_file(&dir, AT("tmp/f"), large);
    prepare(&s, &notes); /* again: nothing is lost */
    assert_int_equal(volumes_measure(&s, &use, &e), 0);
    assert_true(use.is_over && use.bytes >= 16384 && use.bytes < 65536);
    assert_string_equal(use.message,
                        "Usage of EmptyDir volume \"tmp\" exceeds the limit \"8Ki\". ");
    assert_int_equal(volumes_remove(dir.fd, "u1", NULL, &e), 0);
    assert_int_equal(volumes_remove(dir.fd, "u1", NULL, &e), 0);
    assert_int_equal(volumes_remove(dir.fd, "..", NULL, &e), -1);
    assert_false(scratch_has(&dir, "pods/u1"));
    assert_string_equal(scratch_read(&dir, "claims/n/disk.c9/kept"), large);
    assert_int_equal(volumes_remove_claim(dir.fd, needs_object(s.needs, NEED_CLAIM, "disk"), &e),
                     0);
    assert_false(scratch_has(&dir, "claims/n"));
}

static const struct size_row {
    const char *name, *volume, *limits;
    uint64_t want;
} size_rows[] = {
    { "nothing is said: half of the machine", "", "'name':'a'", 1 << 29 },
    { "its own size", "'sizeLimit':'1Mi'", "'name':'a'", 1 << 20 },
    { "larger than the machine", "'sizeLimit':'1Ti'", "'name':'a'", 1 << 29 },
    { "zero is none", "'sizeLimit':'0'", "'name':'a'", 1 << 29 },
    { "the Pod's memory", "'sizeLimit':'1Gi'", "'name':'a','resources':{'limits':{'memory':'2Mi'}}",
      2 << 20 },
    { "of all containers", "",
      "'name':'a','resources':{'limits':{'memory':'2Mi'}}},"
      "{'name':'b','resources':{'limits':{'memory':'1Mi'}}",
      3 << 20 },
    { "one of them has no limit", "",
      "'name':'a','resources':{'limits':{'memory':'2Mi'}}},{'name':'b'", 1 << 29 },
};

static void sizes_in_memory(void **state)
{
    (void)state;
    EACH(r, size_rows) {
        OWN_MEM char *rest = NULL;
        struct volumes_spec s;

        assert_true(asprintf(&rest,
                             "'containers':[{%s}],'volumes':[{'name':'m','emptyDir':"
                             "{'medium':'Memory'%s%s}}]",
                             r->limits, *r->volume ? "," : "", r->volume) > 0);
        s = spec_of(rest, NULL);
        s.downward.memory_bytes = 1 << 30;
        if (volume_memory_bytes(&s, json_at(object_at(s.downward.pod, "spec.volumes"), 0)) !=
            r->want)
            fail_msg("%s", r->name);
    }
}

/* It is the engine's then: of the disk there is a place for it, and nothing of a subPath. */
static void binds_in_memory(void **state)
{
    struct volumes_spec s =
        spec_of("'containers':[{'name':'c','volumeMounts':[{'name':'m','mountPath':'/m',"
                "'subPath':'a/b'}]}],'volumes':[{'name':'m','emptyDir':{'medium':'Memory'}}]",
                NULL);
    OWN(notes_done) struct notes notes = { 0 };
    OWN(volume_binds_done) struct volume_binds b = { 0 };
    OWN(env_done) struct env env = { 0 };
    struct err e;

    (void)state;
    prepare(&s, &notes);
    s.engine = (struct engine *)&s; /* there is one, that is all */
    assert_int_equal(volumes_binds(&s, json_at(object_at(s.downward.pod, "spec.containers"), 0),
                                   &env, &b, &notes, &e),
                     0);
    assert_string_equal(b.v[0].memory, "u1.m");
    assert_string_equal(b.v[0].sub, "a/b");
    assert_false(scratch_has(&dir, AT("m/a")));
    /* What says that there is some stays while it cannot be taken away. */
    scratch_dir(&dir, "pods/u1/memory");
    assert_int_equal(volumes_remove(dir.fd, "u1", NULL, &e), -1);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_true(scratch_has(&dir, "pods/u1/memory"));
}

#define MOUNTS(mounts) "'containers':[{'name':'c','volumeMounts':[" mounts "]}],"
#define VOLUMES                                                                                    \
    "'volumes':[{'name':'e','emptyDir':{}},{'name':'m','configMap':{'name':'cm'}},"                \
    "{'name':'d','persistentVolumeClaim':{'claimName':'disk'}},"                                   \
    "{'name':'r','persistentVolumeClaim':{'claimName':'disk','readOnly':true}}]"

static int binds_of(struct volumes_spec *s, struct volume_binds *b, struct notes *notes,
                    struct err *e)
{
    OWN(env_done) struct env env = { 0 };

    assert_int_equal(env_set(&env, SPAN("WHO"), SPAN("me"), false, e), 0);
    return volumes_binds(s, json_at(object_at(s->downward.pod, "spec.containers"), 0), &env, b,
                         notes, e);
}

static void mounts(void **state)
{
    struct volumes_spec s = spec_of(
        MOUNTS("{'name':'e','mountPath':'/data/sub/x'},{'name':'m','mountPath':'/data'},"
               "{'name':'m','mountPath':'etc','subPath':'k1'},"
               "{'name':'e','mountPath':'/ro','readOnly':true,'mountPropagation':'Bidirectional'},"
               "{'name':'d','mountPath':'/d','subPathExpr':'of/$(WHO)/'},"
               "{'name':'r','mountPath':'/r'}") VOLUMES,
        objects);
    static const struct {
        const char *target, *source, *sub;
        bool is_writable;
    } want[] = {
        { "/data", AT("m"), NULL, false },         { "/etc", AT("m"), "k1", false },
        { "/ro", AT("e"), NULL, false },           { "/d", "claims/n/disk.c9", "of/me", true },
        { "/r", "claims/n/disk.c9", NULL, false }, { "/data/sub/x", AT("e"), NULL, true },
    };
    OWN(volume_binds_done) struct volume_binds b = { 0 };
    OWN(notes_done) struct notes notes = { 0 };
    struct err e;

    (void)state;
    prepare(&s, NULL);
    if (binds_of(&s, &b, &notes, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(b.n, LEN(want));
    for (size_t i = 0; i < b.n; i++) {
        assert_string_equal(b.v[i].target, want[i].target);
        assert_string_equal(b.v[i].source, scratch_path(&dir, want[i].source));
        assert_int_equal(b.v[i].is_writable, want[i].is_writable);
        assert_int_equal(b.v[i].sub != NULL, want[i].sub != NULL);
        if (want[i].sub)
            assert_string_equal(b.v[i].sub, want[i].sub);
    }
    assert_true(scratch_has(&dir, "claims/n/disk.c9/of/me"));
    assert_int_equal(notes.n, 1);
    assert_string_equal(notes.v[0].reason, "FieldNotServed");
}

static const struct sub_row {
    const char *name, *mount, *want;
} sub_rows[] = {
    { "no such key", "'name':'m','subPath':'none'", "there is no 'none' in the volume" },
    { "upwards", "'name':'e','subPath':'a/../..'", "no plain path in the volume" },
    { "a variable that is not there", "'name':'e','subPathExpr':'$(NO)'",
      "missing value for \"NO\"" },
    { "a link that leads out", "'name':'e','subPath':'out/x'", "cannot use 'out/x' of the volume" },
    { "an absolute link", "'name':'e','subPath':'abs'", "cannot use 'abs' of the volume" },
    { "no such volume", "'name':'zz'", "there is no such volume" },
};

static void subs_stay_inside(void **state)
{
    (void)state;
    EACH(r, sub_rows) {
        OWN(volume_binds_done) struct volume_binds b = { 0 };
        OWN(notes_done) struct notes notes = { 0 };
        OWN_MEM char *text = NULL;
        struct volumes_spec s;
        struct err e;

        assert_true(asprintf(&text, MOUNTS("{'mountPath':'/x',%s}") VOLUMES, r->mount) > 0);
        s = spec_of(text, objects);
        prepare(&s, NULL);
        scratch_link(&dir, AT("e/out"), "../../..");
        scratch_link(&dir, AT("e/abs"), "/tmp");
        assert_int_equal(binds_of(&s, &b, &notes, &e), -1);
        if (!strstr(e.msg, r->want))
            fail_msg("%s: '%s', not '%s'", r->name, e.msg, r->want);
        assert_int_equal(unlinkat(dir.fd, AT("e/out"), 0), 0);
        assert_int_equal(unlinkat(dir.fd, AT("e/abs"), 0), 0);
    }
    assert_false(scratch_has(&dir, "x") || scratch_has(&dir, "pods/x"));
}

/* Deeper than any path can say, with a directory that nobody may read, and links that lead away. */
static void deep_trees_go(void **state)
{
    OWN_FD int fd = -1;
    struct dirtree_count count;
    struct err e;

    (void)state;
    scratch_file(&dir, "outside", "stays");
    scratch_dir(&dir, "deep");
    fd = openat(dir.fd, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 300; i++) {
        int next;

        assert_int_equal(mkdirat(fd, "a-directory-of-a-tree", 0755), 0);
        next = openat(fd, "a-directory-of-a-tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        assert_int_equal(symlinkat("/", next, "away"), 0);
        own_fd_close(&fd);
        fd = next;
    }
    scratch_dir(&dir, "deep/..moved-0");
    scratch_file(&dir, "deep/..moved-0/f", "x");
    scratch_file(&dir, "deep/..moved-1", "x");
    scratch_dir(&dir, "deep/shut");
    scratch_file(&dir, "deep/shut/f", "x");
    scratch_link(&dir, "deep/shut/up", "../../outside");
    assert_int_equal(fchmodat(dir.fd, "deep/shut", 0, 0), 0);
    own_fd_close(&fd);
    assert_int_equal(dirtree_find(dir.fd, "deep", &fd, &e), 0);
    assert_int_equal(dirtree_count(fd, &count, &e), 0);
    assert_true(count.is_partial && count.entries > DIRTREE_DEPTH_MAX);
    if (dirtree_remove(dir.fd, "deep", &e) < 0)
        fail_msg("%s", e.msg);
    assert_false(scratch_has(&dir, "deep"));
    assert_string_equal(scratch_read(&dir, "outside"), "stays");
    scratch_link(&dir, "link", "outside");
    assert_int_equal(dirtree_find(dir.fd, "link", &fd, &e), -1);
    assert_int_equal(dirtree_remove(dir.fd, "link", &e), 0);
    assert_int_equal(dirtree_open(dir.fd, "a/../b", 0700, &fd, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(objects_become_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(changes_come_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be, set_up, tear_down),
        cmocka_unit_test_setup_teardown(made_counted_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sizes_in_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(binds_in_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mounts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(subs_stay_inside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deep_trees_go, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
