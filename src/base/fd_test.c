#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int file_with(const char *text)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    struct err e;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, span_cstr(text), &e), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void test_read_exact(void **state)
{
    OWN_FD int fd = file_with("12345678");
    char got[9] = "";
    struct err e;

    assert_int_equal(fd_read_exact(fd, got, 0, &e), 0);
    assert_int_equal(fd_read_exact(fd, got, 5, &e), 0);
    assert_string_equal(got, "12345");
    assert_int_equal(fd_read_exact(fd, got, 4, &e), -1);
    assert_int_equal(e.code, ERR_CLOSED);
    assert_string_equal(e.msg, "end of file with 1 bytes still to come");
}

/* A file of exactly the ceiling is read; one byte more is ERR_LIMIT. */
static void test_read_all(void **state)
{
    for (size_t max = 0; max < 12; max++) {
        OWN_FD int fd = file_with("12345678");
        OWN(buf_done) struct buf out = BUF_INIT(max);
        struct err e;

        assert_int_equal(fd_read_all(fd, &out, &e), max < 8 ? -1 : 0);
        if (max < 8)
            assert_int_equal(e.code, ERR_LIMIT);
        else
            assert_string_equal(buf_cstr(&out), "12345678");
    }
}

static void test_read_file(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(64), tight = BUF_INIT(2);
    char path[64];
    OWN_FD int fd = file_with("content");
    struct err e;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(fd_read_file(path, &out, &e), 0);
    assert_string_equal(buf_cstr(&out), "content");
    assert_int_equal(fd_read_file(path, &tight, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_non_null(strstr(e.msg, path));
    assert_int_equal(fd_read_file("/nowhere/at/all", &out, &e), -1);
    assert_string_equal(e.msg, "cannot open '/nowhere/at/all': No such file or directory");
}

static void test_bad_descriptor(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(64);
    char byte;
    struct err e;

    assert_int_equal(fd_write_all(-1, SPAN("x"), &e), -1);
    assert_int_equal(e.sys, EBADF);
    assert_int_equal(fd_write_all(-1, SPAN_NONE, &e), 0);
    assert_int_equal(fd_read_exact(-1, &byte, 1, &e), -1);
    assert_int_equal(fd_read_all(-1, &out, &e), -1);
    assert_int_equal(fd_set_nonblock(-1, &e), -1);
    assert_int_equal(e.sys, EBADF);
}

static void test_own(void **state)
{
    int fd = file_with("x"), kept = take_fd(&fd);
    char *p = own_strdup("text"), *moved = take_ptr(&p);
    struct err e;

    assert_int_equal(fd, -1);
    assert_null(p);
    assert_string_equal(moved, "text");
    own_mem_free(&moved);
    assert_null(moved);
    assert_int_equal(fd_set_nonblock(kept, &e), 0);
    assert_true(fcntl(kept, F_GETFL) & O_NONBLOCK);
    errno = EXDEV;
    own_fd_close(&kept);
    own_fd_close(&kept);
    assert_int_equal(errno, EXDEV); /* a cleanup never hides the failure that led to it */
    assert_int_equal(kept, -1);
}

/* What is closed is opened, what is open stays what it is. Output is kept aside: cmocka reports there. */
static void test_fill_stdio(void **state)
{
    static const int closed[][2] = { { 0, 0 }, { 1, 1 }, { 0, 1 }, { 0, 2 } };
    char byte;
    struct err e;

    EACH(c, closed) {
        OWN_FD int other = file_with("x");
        int kept[3];

        for (int i = 0; i < 3; i++) {
            kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
            (void)dup2(other, i);
        }
        for (int i = (*c)[0]; i <= (*c)[1]; i++)
            (void)close(i);
        int done = fd_fill_stdio(&e);
        bool is_right = done == 0;
        for (int i = 0; i < 3; i++) {
            bool was_closed = i >= (*c)[0] && i <= (*c)[1];

            is_right &= fcntl(i, F_GETFD) == 0; /* open, and not closed by exec */
            is_right &= pread(i, &byte, 1, 0) == (was_closed ? 0 : 1);
            (void)dup2(kept[i], i);
            (void)close(kept[i]);
        }
        assert_true(is_right);
    }
}

static void test_a_sealed_program_cannot_be_changed(void **state)
{
    struct err e;
    OWN_FD int fd = fd_open_program("program", &e);
    struct stat st;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, SPAN("#!/bin/true\n"), &e), 0);
    assert_int_equal(fd_seal_program(fd, &e), 0);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0555);
    assert_int_equal(fd_seal_program(fd, &e), -1); /* once is for ever */
}

static void test_own_directories(void **state)
{
    static const struct row {
        unsigned mode;
        bool is_fine;
    } rows[] = { { 0700, true },  { 0500, true },   { 0701, false }, { 0710, false },
                 { 0704, false }, { 0740, false },  { 0702, false }, { 0777, false },
                 { 01700, true }, { 01777, false }, { 02750, false } };
    char path[] = "/tmp/fd_test.XXXXXX";
    OWN_FD int fd = -1;
    struct err e;

    assert_non_null(mkdtemp(path));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EACH(r, rows) {
        char hint[64];

        assert_int_equal(fchmod(fd, r->mode), 0);
        assert_int_equal(fd_check_own_dir(fd, path, &e), r->is_fine ? 0 : -1);
        if (r->is_fine)
            continue;
        (void)snprintf(hint, sizeof hint, "chmod 700 '%s'", path);
        assert_int_equal(e.code, ERR_DENIED);
        assert_string_equal(e.hint, hint);
    }
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(test_own_directories),
        cmocka_unit_test(test_read_exact),
        cmocka_unit_test(test_read_all),
        cmocka_unit_test(test_read_file),
        cmocka_unit_test(test_bad_descriptor),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_fill_stdio),
        cmocka_unit_test(test_a_sealed_program_cannot_be_changed),
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
