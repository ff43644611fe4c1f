#include "apiserver/snapshots.h"

void snapshots_done(struct snapshots *s)
{
    EACH(one, s->v) {
        shelf_unref(one->shelf);
    }
}

void snapshots_keep(struct snapshots *s, struct shelf *shelf, uint64_t version, uint64_t now_ms)
{
    __typeof__(&s->v[0]) place = &s->v[0];

    EACH(one, s->v) {
        if (one->version == version && one->until_ms) {
            one->until_ms = now_ms + SNAPSHOT_KEEP_MS;
            return;
        }
        if (one->until_ms < now_ms) {
            shelf_unref(one->shelf);
            one->shelf = NULL;
            one->until_ms = 0;
        }
        if (one->until_ms < place->until_ms)
            place = one;
    }
    shelf_unref(place->shelf);
    place->shelf = shelf_ref(shelf);
    place->version = version;
    place->until_ms = now_ms + SNAPSHOT_KEEP_MS;
}

bool snapshots_find(struct snapshots *s, uint64_t version, uint64_t now_ms, struct shelf **ret)
{
    EACH(one, s->v) {
        if (one->version != version || one->until_ms < now_ms)
            continue;
        one->until_ms = now_ms + SNAPSHOT_KEEP_MS;
        *ret = shelf_ref(one->shelf);
        return true;
    }
    return false;
}
