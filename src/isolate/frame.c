#include "isolate/frame.h"

#include "isolate/mounts.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Where the files of the mould stand, and the one of them that is a link to elsewhere. */
static const char *const places[FRAME_PLACES] = { "/etc", "/etc/ssl", "/etc/pki", "/etc/pki/tls",
                                                  "/etc/localtime" };

void frame_stamp_look(struct frame_stamp *ret)
{
    struct stat st;

    *ret = (struct frame_stamp){ 0 };
    for (size_t i = 0; i < FRAME_PLACES; i++) {
        if (stat(places[i], &st) < 0)
            continue; /* it may come */
        ret->places[i].dev = st.st_dev;
        ret->places[i].ino = st.st_ino;
        ret->places[i].seconds = st.st_mtim.tv_sec;
        ret->places[i].nanoseconds = st.st_mtim.tv_nsec;
    }
}

int frame_mould_make(struct frame_mould *m, struct err *e)
{
    static struct mounts mounts; /* of one mould at a time; a yard has one thread */
    OWN(plan_done) struct plan plan = { 0 };

    /* The stamp first: what changes meanwhile makes the mould an old one. */
    frame_stamp_look(&m->stamp);
    if (plan_make_frame(&plan, e) < 0 || mounts_build_loose(&mounts, &plan, e) < 0)
        return err_wrap(e, "what sandboxes share");
    m->root_fd = take_fd(&mounts.root_fd);
    return 0;
}

void frame_mould_done(struct frame_mould *m)
{
    own_fd_close(&m->root_fd);
    m->root_fd = -1;
}

int frame_cast(const struct frame_mould *m, struct frame *ret, struct err *e)
{
    OWN_FD int etc_fd = mounts_clone_tree(m->root_fd, "etc", 0);
    OWN_FD int dev_fd = mounts_clone_tree(m->root_fd, "dev", 0);

    /* The copies, each the root of what is mounted nowhere: inside such a tree the kernel changes nothing. */
    if (etc_fd < 0 || dev_fd < 0 || mounts_seal(etc_fd) < 0 || mounts_seal(dev_fd) < 0)
        return err_sys(e, "cannot copy what sandboxes share");
    *ret = (struct frame){ take_fd(&etc_fd), take_fd(&dev_fd), -1, -1 };
    return 0;
}

void frame_done(struct frame *f)
{
    own_fd_close(&f->etc_fd);
    own_fd_close(&f->dev_fd);
    own_fd_close(&f->lens_fd);
    own_fd_close(&f->ground_fd);
    *f = (struct frame)FRAME_INIT;
}
