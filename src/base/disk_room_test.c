#include "base/disk_room.h"

#include "base/own.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/vfs.h>

#include <cmocka.h>

static void test_floor(void **state)
{
    OWN_FD int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct disk_room r;
    struct statfs fs;
    struct err e;

    (void)state;
    assert_int_equal(fstatfs(fd, &fs), 0);
    assert_int_equal(disk_room_read(fd, 0, &r, &e), 0);
    assert_true(r.floor_bytes >= DISK_FLOOR_BYTES);
    assert_true(r.floor_bytes >= (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize / DISK_FLOOR_PART);
    assert_int_equal(disk_room_read(fd, 4711, &r, &e), 0);
    assert_int_equal(r.floor_bytes, 4711);
    assert_int_equal(disk_room_read(-1, 0, &r, &e), -1);
}

static void test_words(void **state)
{
    struct disk_room r = { .free_bytes = (64 << 20) - 1, .floor_bytes = 64 << 20 };
    char text[DISK_ROOM_TEXT_BYTES];

    (void)state;
    assert_true(disk_room_is_short(&r));
    assert_string_equal(
        disk_room_text(&r, text, sizeof text),
        "only 63 MiB are free, and sandboxes leave 64 MiB: those that write most stand still");
    r.free_bytes = 0;
    assert_non_null(strstr(disk_room_text(&r, text, sizeof text), "nothing new is stored"));
    r.free_bytes = r.floor_bytes;
    assert_false(disk_room_is_short(&r));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_floor),
                                        cmocka_unit_test(test_words) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
