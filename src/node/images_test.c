#include "node/images.h"

#include "base/scratch.h"
#include "node/testpod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
    const char *name;
    const char *policy;
    const char *want; /* "server", the command, or the reason */
} rows[] = {
    { "registry.example/agent-sandbox/python-runtime-sandbox:v0.1.0", NULL, "server" },
    { "python-runtime-sandbox", "Always", "server" },
    { "silica-python:0.1.0", NULL, "server" },
    { "localhost:5000/python-runtime-sandbox-slim:x", NULL, "server" },
    { "registry.example/sandboxd@sha256:00ff", "Never", "server" },
    { "python:3.12-slim", "IfNotPresent", "server" },
    { "hub.example/library/python", NULL, "server" },
    { "library/python:3", NULL, "server" },
    { "busybox", NULL, "sh" },
    { "busybox:1.36", NULL, "sh" },
    { "host", NULL, "sleep" },
    { "registry.example/pause:3.9", NULL, "sleep" },
    { "example.com/python:3", NULL, "ErrImagePull" },
    { "notpython:3", NULL, "ErrImagePull" },
    { "busyboxes", NULL, "ErrImagePull" },
    { "redis", "Never", "ErrImageNeverPull" },
    { "", NULL, "InvalidImageName" },
    { "Bad Name", NULL, "InvalidImageName" },
    { "a/", NULL, "InvalidImageName" },
    { ":tag", NULL, "InvalidImageName" },
};

static void names(void **state)
{
    struct images *t;
    struct err e;

    (void)state;
    assert_int_equal(images_parse(SPAN_NONE, "/data", &t, &e), 0);
    EACH(r, rows) {
        const struct image *im = NULL;
        const char *got = NULL;

        if (images_find(t, r->name, r->policy, &im, &got, &e) == 0)
            got = im->is_server ? "server" : json_cstr(json_at(im->command, 0));
        if (strcmp(got, r->want) != 0)
            fail_msg("'%s': %s, not %s", r->name, got, r->want);
    }
    images_free(t);
}

static void what_to_do(void **state)
{
    const struct image *im;
    const char *reason;
    struct images *t;
    struct err e;

    (void)state;
    assert_int_equal(images_parse(SPAN_NONE, "/data", &t, &e), 0);
    assert_int_equal(images_find(t, "redis:7", NULL, &im, &reason, &e), -1);
    assert_string_equal(
        e.msg,
        "image \"redis:7\" is not in the table of images, and nothing is pulled here: to run it "
        "on this machine's own programs, add to '/data/images.yaml' under images: - {names: "
        "[\"redis:7\"], root: host}");
    assert_int_equal(images_find(t, "redis:7", "Never", &im, &reason, &e), -1);
    assert_string_equal(e.msg,
                        "Container image \"redis:7\" is not present with pull policy of Never");
    images_free(t);
}

static const struct table_row {
    const char *name, *text;
    const char *error; /* a part of it; NULL: it is read, and "mine:1" is in it */
} tables[] = {
    { "ours stay", "images: [{names: ['mine:*'], root: host, command: [a]}]", NULL },
    { "JSON", "{\"defaults\":false,\"images\":[{\"names\":[\"*\"],\"root\":\"host\"}]}", NULL },
    { "everything",
      "images:\n- names: ['mine:1']\n  root: host\n  server: true\n  serverCommands: [x]\n"
      "  serverOptions: true\n  substitute: true\n  env: {A: b}\n  ports: [1, 65535]\n  workingDir: /w\n",
      NULL },
    { "not YAML", "images: [", "yaml: " },
    { "not a map", "[1]", "it is a array, not a map" },
    { "unknown key", "image: []", "'image' is nothing that is known here" },
    { "unknown key of a row", "images: [{names: [a], rot: host}]", "image 1: 'rot' is nothing" },
    { "twice", "images: []\nimages: []", "images" },
    { "no list", "images: {}", "images is a object, not a list" },
    { "no names", "images: [{root: host}]", "image 1: there are no names" },
    { "a name that is none", "images: [{names: [1], root: host}]", "names holds something" },
    { "no root", "images: [{names: [a]}]", "there is no root" },
    { "another root", "images: [{names: [a], root: oci}]", "root 'oci' is not known" },
    { "no flag", "images: [{names: [a], root: host, server: 3}]", "server is neither" },
    { "both", "images: [{names: [a], root: host, server: true, command: [x]}]", "a server has no" },
    { "env", "images: [{names: [a], root: host, env: [x]}]", "env is a array, not a map" },
    { "a number in env", "images: [{names: [a], root: host, env: {A: 1}}]", "env: 'A' is no" },
    { "port 0", "images: [{names: [a], root: host, ports: [0]}]", "no port" },
    { "ports", "images: [{names: [a], root: host, ports: 80}]", "ports is a number" },
    { "relative", "images: [{names: [a], root: host, workingDir: w}]", "no absolute path" },
};

static void texts(void **state)
{
    (void)state;
    EACH(r, tables) {
        const struct image *im;
        const char *reason;
        struct images *t;
        struct err e;
        int rc = images_parse(span_cstr(r->text), "/data", &t, &e);

        if ((rc < 0) != (r->error != NULL) || (rc < 0 && !strstr(e.msg, r->error)))
            fail_msg("%s: '%s', not '%s'", r->name, rc < 0 ? e.msg : "(read)", r->error);
        if (rc < 0)
            continue;
        assert_int_equal(images_find(t, "mine:1", NULL, &im, &reason, &e), 0);
        assert_string_equal(im->id, "silica://host");
        images_free(t);
    }
}

static void a_file_that_changes(void **state)
{
    struct scratch s;
    const struct image *im;
    const char *reason;
    struct images *t;
    struct err e;

    (void)state;
    scratch_make(&s);
    assert_int_equal(images_load(s.fd, "DATA", &t, &e), 0);
    assert_int_equal(images_find(t, "mine", NULL, &im, &reason, &e), -1);
    scratch_file(&s, IMAGES_FILE_JSON, "{\"images\":[{\"names\":[\"mine:*\"],\"root\":\"host\"}]}");
    assert_int_equal(images_reload(&t, &e), 0);
    assert_int_equal(images_find(t, "mine", NULL, &im, &reason, &e), 0);
    scratch_file(&s, IMAGES_FILE, "images: 5");
    assert_int_equal(images_reload(&t, &e), -1);
    assert_string_equal(e.msg, "'DATA/images.yaml': line 1: images is a number, not a list");
    assert_int_equal(images_find(t, "mine", NULL, &im, &reason, &e), 0);
    scratch_file(&s, IMAGES_FILE, "");
    assert_int_equal(images_reload(&t, &e), 0);
    assert_int_equal(images_find(t, "mine", NULL, &im, &reason, &e), -1);
    images_free(t);
    scratch_remove(&s);
}

static const struct start_row {
    const char *name, *image, *container;
    const char *want; /* "server: options" or the words; NULL: an error */
    bool has_note;
} starts[] = {
    { "the server", "python:3", "{}", "server:" },
    { "a command in its place", "python:3", "{'command':['sleep'],'args':['1']}", "sleep 1" },
    { "args alone are a command", "python:3", "{'args':['python','x.py']}", "python x.py" },
    { "its own server by name", "python-runtime-sandbox",
      "{'image':'i','command':['uvicorn','main:app']}", "server:", true },
    { "options", "sandboxd", "{'args':['--root-dir=/x','$(A)']}", "server: --root-dir=/x one" },
    { "by path", "sandboxd", "{'command':['/bin/sandboxd'],'args':['--x']}", "server: --x" },
    { "the image's command", "pause:x", "{}", "sleep infinity" },
    { "replaced by args", "busybox", "{'args':['echo','$(A)']}", "echo one" },
    { "replaced by both", "busybox", "{'command':['sh','-c'],'args':['x']}", "sh -c x" },
    { "nothing to run", "bare", "{}", NULL },
};

static void words_of(char **v, struct buf *out)
{
    struct err e;

    for (; v && *v; v++)
        assert_int_equal(buf_addf(out, &e, "%s%s", out->n ? " " : "", *v), 0);
}

static void what_is_run(void **state)
{
    OWN(env_done) struct env env = { 0 };
    struct images *t;
    struct err e;

    (void)state;
    assert_int_equal(env_set(&env, SPAN("A"), SPAN("one"), false, &e), 0);
    assert_int_equal(images_parse(SPAN("images: [{names: [bare], root: host}]"), "", &t, &e), 0);
    EACH(r, starts) {
        OWN(image_start_done) struct image_start start = { 0 };
        OWN(notes_done) struct notes notes = { 0 };
        OWN(buf_done) struct buf got = BUF_INIT(256);
        const struct image *im;
        const char *reason;
        int rc;

        assert_int_equal(images_find(t, r->image, NULL, &im, &reason, &e), 0);
        rc = image_start_make(im, testpod_value(r->container), &env, &start, &notes, &e);
        if (rc < 0) {
            assert_null(r->want);
            assert_string_equal(e.msg, "no command specified");
            continue;
        }
        if (start.is_server)
            assert_int_equal(buf_add(&got, SPAN("server:"), &e), 0);
        words_of(start.is_server ? start.options : start.command, &got);
        if (!r->want || strcmp(buf_cstr(&got), r->want) != 0)
            fail_msg("%s: '%s', not '%s'", r->name, buf_cstr(&got), r->want);
        assert_int_equal(notes.n, r->has_note + im->is_substitute);
        if (im->is_substitute) {
            assert_string_equal(notes.v[0].reason, "ImageSubstituted");
            assert_non_null(strstr(notes.v[0].message, "programs run in its place ("));
        }
    }
    images_free(t);
    testpod_free();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(what_to_do),
        cmocka_unit_test(texts),
        cmocka_unit_test(what_is_run),
        cmocka_unit_test(a_file_that_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
