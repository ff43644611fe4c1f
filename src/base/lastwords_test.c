#include "base/lastwords.h"

#include "base/scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const struct row {
    const char *name;
    struct span in;
    const char *words; /* NULL: all of it is output */
    const char *rest;
} rows[] = {
    { "words alone", SPAN("\0silica last words 0002\nhi"), "hi", "" },
    { "output behind", SPAN("\0silica last words 0002\nhimore"), "hi", "more" },
    { "none", SPAN("\0silica last words 0000\n"), "", "" },
    { "fewer than it says", SPAN("\0silica last words 0003\nhi"), NULL, "" },
    { "more than there can be", SPAN("\0silica last words 9999\nhi"), NULL, "" },
    { "no number", SPAN("\0silica last words 00x2\nhi"), NULL, "" },
    { "no line", SPAN("\0silica last words 0002 hi"), NULL, "" },
    { "a mark cut short", SPAN("\0silica last words 000"), NULL, "" },
    { "not at the beginning", SPAN("x\0silica last words 0002\nhi"), NULL, "" },
    { "nothing", SPAN(""), NULL, "" },
};

static void reading(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct span in = r->in, words = SPAN("?");
        bool is_read = lastwords_read(&in, &words);

        if (is_read != (r->words != NULL))
            fail_msg("%s", r->name);
        if (is_read && (!span_is(words, r->words) || !span_is(in, r->rest)))
            fail_msg("%s", r->name);
        if (!is_read && !span_eq(in, r->in))
            fail_msg("%s: it was changed", r->name);
    }
}

static void sending(void **state)
{
    uint8_t text[2 * LASTWORDS_MAX_BYTES];
    char large[LASTWORDS_MAX_BYTES];
    struct span in, words;
    int fds[2];

    (void)state;
    memset(large, 'x', sizeof large);
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    lastwords_send(fds[1], span_of(large, sizeof large));
    in = span_of(text, (size_t)read(fds[0], text, sizeof text));
    assert_true(lastwords_read(&in, &words) && in.n == 0);
    assert_true(span_eq(words, span_of(large, sizeof large)));
    lastwords_send(fds[1], SPAN(""));
    assert_int_equal(read(fds[0], text, sizeof text), -1);
    /* What nobody reads stays the only thing in there. */
    assert_int_equal(write(fds[1], "log\n", 4), 4);
    lastwords_send(fds[1], SPAN("words"));
    assert_int_equal(read(fds[0], text, sizeof text), 4);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void finding(void **state)
{
    struct scratch dir;
    char large[LASTWORDS_MAX_BYTES + 3];

    (void)state;
    scratch_make(&dir);
    memset(large, 'x', sizeof large - 1);
    large[0] = large[1] = 'y';
    large[sizeof large - 1] = '\0';
    scratch_file(&dir, "plain", "words\n");
    scratch_file(&dir, "empty", "");
    scratch_file(&dir, "large", large);
    scratch_link(&dir, "link", "plain");
    scratch_dir(&dir, "dir");
    assert_int_equal(mkfifo(scratch_path(&dir, "fifo"), 0600), 0);
    static const struct {
        const char *path, *want;
    } files[] = { { "plain", "words\n" }, { "empty", "" }, { "link", "" },   { "dir", "" },
                  { "fifo", "" },         { "none", "" },  { "large", NULL } };

    EACH(f, files) {
        OWN(buf_done) struct buf found = BUF_INIT(LASTWORDS_MAX_BYTES);

        lastwords_find(scratch_path(&dir, f->path), &found);
        assert_string_equal(buf_cstr(&found), f->want ? f->want : large + 2); /* its end */
    }
    scratch_remove(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading),
        cmocka_unit_test(sending),
        cmocka_unit_test(finding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
