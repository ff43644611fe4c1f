#include "apiserver/metrics.h"

#include "ev/loop.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void remove_all(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *d;

    while (dir && (d = readdir(dir)))
        if (d->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), d->d_name, 0);
    if (dir)
        closedir(dir);
    (void)rmdir(path);
}

static void has(const struct buf *text, const char *line)
{
    if (!strstr(buf_cstr(text), line))
        fail_msg("no line '%s' in:\n%.4000s", line, buf_cstr(text));
}

static void test_what_is_counted_is_told(void **state)
{
    const struct kind *pods = kind_find("", "v1", "pods");
    const struct kind_subresource *status = kind_subresource(&pods->versions[0], "status");
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    char dir[] = "/tmp/silica-metrics-XXXXXX";
    struct store_config config = { .dir = dir };
    struct metrics *m = metrics_new();
    struct ev_loop *loop;
    struct store *store;
    struct err e;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(ev_loop_new(&loop, &e), 0);
    assert_int_equal(store_open(loop, &config, &store, &e), 0);
    metrics_count(m, VERB_GET, pods, &pods->versions[0], NULL, 200, 4000);
    metrics_count(m, VERB_GET, pods, &pods->versions[0], NULL, 200, 30000);
    metrics_count(m, VERB_GET, pods, &pods->versions[0], NULL, 404, 90000000);
    metrics_count(m, VERB_PATCH, pods, &pods->versions[0], status, 200, 1);
    metrics_count(m, VERB_WATCH, pods, &pods->versions[0], NULL, 200, 1);
    metrics_count(m, VERB_NONE, NULL, NULL, NULL, 200, 1);
    assert_int_equal(metrics_write(m, store, &text, &e), 0);

#define GET_PODS                                                                                   \
    "component=\"apiserver\",group=\"\",resource=\"pods\",subresource=\"\",verb=\"GET\",version=\"v1\""
    has(&text, "apiserver_request_total{code=\"200\"," GET_PODS "} 2\n");
    has(&text, "apiserver_request_total{code=\"404\"," GET_PODS "} 1\n");
    has(&text, "_bucket{" GET_PODS ",le=\"0.005\"} 1\n");
    has(&text, "_bucket{" GET_PODS ",le=\"0.05\"} 2\n");
    has(&text, "_bucket{" GET_PODS ",le=\"60\"} 2\n");
    has(&text, "_bucket{" GET_PODS ",le=\"+Inf\"} 3\n");
    has(&text, "_sum{" GET_PODS "} 90.034000\n");
    has(&text, "subresource=\"status\",verb=\"PATCH\"");
    has(&text, "apiserver_storage_objects{resource=\"pods\"} 0\n");
    has(&text, "\nprocess_resident_memory_bytes ");
    assert_null(strstr(buf_cstr(&text),
                       "_count{component=\"apiserver\",group=\"\",resource=\"pods\","
                       "subresource=\"\",verb=\"WATCH\""));
    metrics_free(m);
    store_close(store);
    ev_loop_free(loop);
    remove_all(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_is_counted_is_told) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
