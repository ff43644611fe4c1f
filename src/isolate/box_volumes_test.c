/* Trees of the host in a box: where they are shown, what of them, and whose they are. */
#include "isolate/box_rig.h"

#include <fcntl.h>
#include <sys/stat.h>

static void binds(void **state)
{
    char dir[] = "/tmp/box-test-XXXXXX", file[64], link_path[64];
    struct box_bind b[3];
    struct box_spec spec = box_rig_spec(NULL);
    OWN_FD int fd = -1;

    (void)state;
    box_rig_need_user_namespaces();
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0777), 0);
    (void)snprintf(file, sizeof file, "%s/note", dir);
    (void)snprintf(link_path, sizeof link_path, "%s/out", dir);
    fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, "hello\n", 6), 6);
    assert_int_equal(symlink("/etc", link_path), 0);
    b[0] = (struct box_bind){ dir, "/data", false };
    b[1] = (struct box_bind){ dir, "/deep/er/rw", true };
    b[2] = (struct box_bind){ file, "/etc/note", false };
    spec.binds = b;
    spec.bind_count = 3;
    box_rig_expect(
        "binds", spec,
        "cat /data/note /etc/note; touch /data/x 2>&1 | grep -o 'Read-only.*'; echo in > "
        "/deep/er/rw/made; ls /data",
        "hello\nhello\nRead-only file system\nmade\nnote\nout\n");
    /* A link in a caller's tree does not lead out of the sandbox's root. */
    b[2] = (struct box_bind){ file, "/deep/er/rw/out/planted", false };
    box_rig_expect("link", spec, "cat /etc/planted; ls /data", "hello\nmade\nnote\nout\n");
    assert_int_equal(access("/etc/planted", F_OK), -1);
    /* A part of it: a file, and what a link that stays in it leads to; a link that leads out is an error. */
    b[0] = (struct box_bind){ dir, "/part", false, "note" };
    b[1] = (struct box_bind){ dir, "/linked", true, "in" };
    spec.bind_count = 2;
    (void)snprintf(file, sizeof file, "%s/in", dir);
    assert_int_equal(symlink("note", file), 0);
    box_rig_expect("parts", spec, "cat /part /linked", "hello\nhello\n");
    (void)unlink(file);
    b[1].sub = "out/hostname";
    box_rig_expect_error("a part outside", spec, "out/hostname' inside: Invalid cross-device link");
    (void)snprintf(file, sizeof file, "%s/made", dir);
    (void)unlink(file);
    (void)snprintf(file, sizeof file, "%s/note", dir);
    (void)unlink(file);
    (void)unlink(link_path);
    assert_int_equal(rmdir(dir), 0);
}

/* Root's volumes show the ids that are on disk, and get those of who writes. */
static void ids_of_volumes(void **state)
{
    char dir[] = "/tmp/box-test-XXXXXX", file[64];
    struct box_bind b = { dir, "/data", true };
    struct box_spec spec = box_rig_spec(NULL);
    struct stat st;

    (void)state;
    box_rig_need_user_namespaces();
    assert_non_null(mkdtemp(dir));
    if (geteuid() == 0)
        assert_int_equal(chown(dir, 1000, 1000), 0);
    (void)snprintf(file, sizeof file, "%s/made", dir);
    spec.binds = &b;
    spec.bind_count = 1;
    box_rig_expect("ids", spec, "stat -c %u:%g /data; touch /data/made && stat -c %u:%g /data/made",
                   "1000:1000\n1000:1000\n");
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_uid, geteuid() == 0 ? 1000 : geteuid());
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    static const struct CMUnitTest all[] = { cmocka_unit_test(binds),
                                             cmocka_unit_test(ids_of_volumes) };
    static const struct CMUnitTest beside[] = { cmocka_unit_test(binds) };
    static const struct CMUnitTest ranged[] = { cmocka_unit_test(binds) };

    return box_rig_run(&(struct box_rig_plan){
        .all = BOX_RIG_CASES(all),
        .beside_a_yard = BOX_RIG_CASES(beside),
        .ranged = BOX_RIG_CASES(ranged),
    });
}
