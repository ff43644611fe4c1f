/* What a container of an image runs: the Pod's words, the image's, or our server in place of the image's. */
#include "node/images.h"

#include <string.h>

void image_start_done(struct image_start *s)
{
    free(s->options);
    free(s->command);
    *s = (struct image_start){ 0 };
}

/* The pointers of two lists in one block, with copies of the texts behind them. */
static char **joined(char **a, char **b)
{
    size_t n = 0, bytes = 0, at;
    char **lists[] = { a, b }, **v, *text;

    for (size_t l = 0; l < LEN(lists); l++)
        for (char **w = lists[l]; *w; w++)
            n++, bytes += strlen(*w) + 1;
    v = own_new((n + 1) * sizeof *v + bytes);
    text = (char *)(v + n + 1);
    at = 0;
    for (size_t l = 0; l < LEN(lists); l++) {
        for (char **w = lists[l]; *w; w++) {
            size_t size = strlen(*w) + 1;

            v[at++] = memcpy(text, *w, size);
            text += size;
        }
    }
    return v;
}

/* Words behind a command that stands for our server: its options, if it is known to take the same ones. */
static char **server_options(const struct image *im, char **words, const char *name,
                             struct notes *notes)
{
    char *none[] = { NULL };

    if (!im->has_options && words[0])
        notes_add(notes, "ImageCommandReplaced",
                  "silica-runtime takes the place of the server of image %s: the words behind its "
                  "command are not used",
                  name);
    return joined(im->has_options ? words : none, none);
}

int image_start_make(const struct image *im, const struct json *container, const struct env *env,
                     struct image_start *ret, struct notes *notes, struct err *e)
{
    OWN_MEM char **command = NULL, **args = NULL, **own = NULL, **words = NULL;
    const char *name = json_cstr(json_get(container, "image"));
    bool has_options_only;

    if (env_words(env, json_get(container, "command"), &command, e) < 0 ||
        env_words(env, json_get(container, "args"), &args, e) < 0 ||
        env_words(env, im->command, &own, e) < 0)
        return -1;
    words = joined(command, args);
    has_options_only = im->has_options && !command[0];
    *ret = (struct image_start){ 0 };
    if (im->is_substitute)
        notes_add(notes, "ImageSubstituted",
                  "image \"%s\" is not pulled here: this machine's own programs run in its place "
                  "(%s)",
                  name ? name : "", im->root_name);
    if (im->is_server && (!words[0] || has_options_only ||
                          image_any_fits(im->server_commands, span_cstr(words[0])))) {
        ret->is_server = true;
        ret->options = server_options(im, words[0] && !has_options_only ? words + 1 : words,
                                      name ? name : "", notes);
        return 0;
    }
    if (!words[0] && !own[0])
        return err_set(e, ERR_INVALID, "no command specified");
    ret->command = take_ptr(words[0] ? &words : &own);
    ret->options = own_new(sizeof *ret->options);
    return 0;
}
