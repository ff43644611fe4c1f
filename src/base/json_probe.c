/* The driver behind json_python_test.py: what base/json makes of each text on stdin, one line each.
 *
 *     json_probe           frames of a 4-byte length and that many bytes; answers "O <compact form>",
 *                          "L" (a limit), or "E <char> <line> <column> <is encoding> <what>"
 *     json_probe doubles   8-byte doubles; answers the text each is written as
 */
#include "base/fd.h"
#include "base/json.h"
#include "base/json_num.h"

#define INPUT_MAX_BYTES (64 * 1024 * 1024)

static void probe_text(struct span text)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_error at;
    struct span bytes;
    struct err e;

    if (json_parse_at(text, NULL, &at, &doc, &e) == 0) {
        bytes = json_doc_bytes(doc);
        printf("O %.*s\n", SPAN_ARG(bytes));
    } else if (e.code == ERR_LIMIT) {
        printf("L\n");
    } else {
        printf("E %zu %zu %zu %d %s\n", at.char_at, at.line, at.column, at.is_encoding, at.what);
    }
}

static int probe_frames(struct span in)
{
    while (in.n >= sizeof(uint32_t)) {
        uint32_t n;

        memcpy(&n, in.p, sizeof n);
        in = span_skip(in, sizeof n);
        if (n > in.n)
            return 1;
        probe_text(span_slice(in, 0, n));
        in = span_skip(in, n);
    }
    return in.n != 0;
}

static int probe_doubles(struct span in)
{
    for (; in.n >= sizeof(double); in = span_skip(in, sizeof(double))) {
        char text[JSON_NUM_TEXT_BYTES];
        double v;

        memcpy(&v, in.p, sizeof v);
        printf("%.*s\n", (int)json_num_write(v, text), text);
    }
    return in.n != 0;
}

int main(int argc, char **argv)
{
    OWN(buf_done) struct buf in = BUF_INIT(INPUT_MAX_BYTES);
    struct err e;

    if (fd_read_all(0, &in, &e) < 0) {
        fprintf(stderr, "json_probe: %s\n", e.msg);
        return 1;
    }
    return argc > 1 && strcmp(argv[1], "doubles") == 0 ? probe_doubles(buf_span(&in))
                                                       : probe_frames(buf_span(&in));
}
