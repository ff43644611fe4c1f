/* Every file of tests/corpus/json-suite: y_ parses and is a fixed point of write and parse, n_ is refused and the
 * fault lies inside the text. */
#include "base/fd.h"
#include "base/json.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SUITE_DIR      "tests/corpus/json-suite"
#define FILE_MAX_BYTES (1024 * 1024)
#define ACCEPTED_MIN   100 /* the suite is part of the code: losing files is a failure */
#define REFUSED_MIN    200

static void check_accepted(const char *file, struct json_doc *doc)
{
    OWN(json_doc_done) struct json_doc *again = NULL, *from_pretty = NULL;
    OWN(buf_done) struct buf pretty = BUF_INIT(16 * FILE_MAX_BYTES);
    struct span bytes = json_doc_bytes(doc);
    struct err e;

    if (json_parse(bytes, NULL, &again, &e) < 0)
        fail_msg("%s: cannot read back what was written: %s", file, e.msg);
    if (!span_eq(json_doc_bytes(again), bytes))
        fail_msg("%s: written again it differs", file);
    assert_int_equal(json_write_as(json_doc_root(doc), JSON_PRETTY, &pretty, &e), 0);
    if (json_parse(buf_span(&pretty), NULL, &from_pretty, &e) < 0)
        fail_msg("%s: cannot read back the pretty form: %s", file, e.msg);
    if (!span_eq(json_doc_bytes(from_pretty), bytes))
        fail_msg("%s: the pretty form says something else", file);
}

static void check_file(int dir_fd, const char *file)
{
    OWN(buf_done) struct buf text = BUF_INIT(FILE_MAX_BYTES);
    OWN_FD int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_error where = { 0 };
    struct err e = { 0 };
    int r;

    assert_true(fd >= 0);
    assert_int_equal(fd_read_all(fd, &text, &e), 0);
    r = json_parse_at(buf_span(&text), NULL, &where, &doc, &e);
    if (file[0] == 'y' && r < 0)
        fail_msg("%s: refused: %s", file, e.msg);
    if (file[0] == 'n' && r == 0)
        fail_msg("%s: accepted", file);
    if (r == 0) {
        check_accepted(file, doc);
        return;
    }
    assert_null(doc);
    if (e.code != ERR_LIMIT && (e.code != ERR_INVALID || !where.what || where.byte_at > text.n))
        fail_msg("%s: odd fault: %s", file, e.msg);
}

static void test_suite(void **state)
{
    DIR *dir = opendir(SUITE_DIR);
    unsigned accepted = 0, refused = 0;

    assert_non_null(dir);
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        if (strncmp(d->d_name, "y_", 2) != 0 && strncmp(d->d_name, "n_", 2) != 0)
            continue;
        check_file(dirfd(dir), d->d_name);
        accepted += d->d_name[0] == 'y';
        refused += d->d_name[0] == 'n';
    }
    closedir(dir);
    assert_true(accepted >= ACCEPTED_MIN);
    assert_true(refused >= REFUSED_MIN);
}

int main(void)
{
    const struct CMUnitTest list[] = { cmocka_unit_test(test_suite) };

    return cmocka_run_group_tests(list, NULL, NULL);
}
