/* Each row's bytes are fed whole and cut small; the transcript of events must be the same and as written. */
#include "http/multipart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define TYPE "multipart/form-data; boundary=XX"

static void note(struct buf *log, const char *fmt, ...) PRINTF(2, 3);
static void note(struct buf *log, const char *fmt, ...)
{
    struct err e;
    va_list ap;

    va_start(ap, fmt);
    assert_int_equal(buf_vaddf(log, &e, fmt, ap), 0);
    va_end(ap);
}

static void note_part(struct buf *log, const struct multipart *m)
{
    struct span type = http_head_get(&m->head, "content-type");

    note(log, "part %.*s", SPAN_ARG(m->name));
    if (m->has_filename)
        note(log, " file '%.*s'", SPAN_ARG(m->filename));
    if (type.p)
        note(log, " %.*s", SPAN_ARG(type));
    note(log, ": ");
}

static void transcribe(struct buf *log, const struct multipart_limits *limits, const char *type,
                       struct span in, size_t cut)
{
    OWN(multipart_done) struct multipart m;
    enum multipart_event ev = MULTIPART_MORE;
    size_t at = 0, have = 0;
    struct err e = { 0 };

    if (multipart_init(&m, span_cstr(type), limits, &e) < 0) {
        note(log, "BAD %d %s\n", m.fault, e.msg);
        return;
    }
    do {
        struct span data = SPAN_NONE;
        size_t used = 0;

        ev = multipart_feed(&m, span_slice(in, at, at + have), &used, &data, &e);
        at += used;
        have -= used;
        switch (ev) {
        case MULTIPART_MORE:
            assert_int_equal(have, 0);
            have = MIN(cut, in.n - at);
            break;
        case MULTIPART_PART_HEAD:
            note_part(log, &m);
            break;
        case MULTIPART_PART_DATA:
            assert_true(data.n > 0);
            note(log, "%.*s", SPAN_ARG(data));
            break;
        case MULTIPART_PART_END:
            note(log, " end\n");
            break;
        case MULTIPART_END:
            note(log, "END\n");
            break;
        case MULTIPART_BAD:
            note(log, "BAD %d %s\n", m.fault, e.msg);
            assert_int_equal(multipart_feed(&m, SPAN_NONE, &used, &data, &e), MULTIPART_BAD);
            return;
        }
    } while (ev != MULTIPART_MORE || have);
    if (multipart_finish(&m, &e) < 0)
        note(log, "CUT\n");
}

static void check(const char *name, const struct multipart_limits *limits, const char *type,
                  struct span in, const char *want)
{
    static const size_t cuts[] = { SIZE_MAX, 1, 2, 3, 5, 17, 64 };

    EACH(cut, cuts) {
        OWN(buf_done) struct buf log = BUF_INIT(1024 * 1024);

        transcribe(&log, limits, type, in, *cut);
        if (strcmp(buf_cstr(&log), want))
            print_error("%s (pieces of %zu)\n", name, *cut);
        assert_string_equal(buf_cstr(&log), want);
    }
}

#define DISPOSITION "Content-Disposition: form-data; "
#define ONE(head)   BYTES("--XX\r\n" head "\r\n\r\nx\r\n--XX--\r\n")

static void test_bodies(void **state)
{
    static const struct row {
        const char *name;
        struct span in;
        const char *want;
    } rows[] = {
        { "two parts",
          BYTES(
              "--XX\r\n" DISPOSITION
              "name=\"a\"\r\n\r\n1\r\n--XX\r\nContent-Disposition: form-data; name=file; "
              "filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\nhello\r\nworld\r\n--XX--\r\n"),
          "part a: 1 end\npart file file 'f.txt' text/plain: hello\r\nworld end\nEND\n" },
        { "no line end behind", BYTES("--XX\r\n" DISPOSITION "name=a\r\n\r\n1\r\n--XX--"),
          "part a: 1 end\nEND\n" },
        { "preamble and epilogue",
          BYTES("ignored --XX\r\n--X\r\n--XX\r\n" DISPOSITION
                "name=a\r\n\r\n1\r\n--XX--\r\n--XX\r\nrest"),
          "part a: 1 end\nEND\n" },
        { "blank line first", BYTES("\r\n--XX\r\n" DISPOSITION "name=a\r\n\r\n1\r\n--XX--"),
          "part a: 1 end\nEND\n" },
        { "empty part", BYTES("--XX\r\n" DISPOSITION "name=a\r\n\r\n\r\n--XX--"),
          "part a:  end\nEND\n" },
        { "empty part in fewer bytes", BYTES("--XX\r\n" DISPOSITION "name=a\r\n\r\n--XX--"),
          "part a:  end\nEND\n" },
        { "no parts", BYTES("--XX--\r\n"), "END\n" },
        { "almost boundaries",
          BYTES("--XX\r\n" DISPOSITION
                "name=a\r\n\r\n--X\r\n--XY\r\r\n\r\n--XX-\r\n--XX\rz\r\n--XXX\r\n--XX--"),
          "part a: --X\r\n--XY\r\r\n\r\n--XX-\r\n--XX\rz\r\n--XXX end\nEND\n" },
        { "CRs", BYTES("--XX\r\n" DISPOSITION "name=a\r\n\r\n\r\r\r\n\r\n\r\n--XX--"),
          "part a: \r\r\r\n\r\n end\nEND\n" },
        { "boundary without CRLF",
          BYTES("--XX\r\n" DISPOSITION "name=a\r\n\r\nz--XX\n--XX--\r\n--XX--"),
          "part a: z--XX\n--XX-- end\nEND\n" },
        { "cut in data", BYTES("--XX\r\n" DISPOSITION "name=a\r\n\r\nzz"), "part a: zzCUT\n" },
        { "cut in a head", BYTES("--XX\r\n" DISPOSITION), "CUT\n" },
        { "cut in the boundary", BYTES("--XX\r\n" DISPOSITION "name=a\r\n\r\nzz\r\n--XX-"),
          "part a: zzCUT\n" },
        { "empty body", BYTES(""), "CUT\n" },
        { "another boundary", BYTES("--YY\r\n" DISPOSITION "name=a\r\n\r\nzz\r\n--YY--"), "CUT\n" },
    };

    EACH(r, rows)
        check(r->name, NULL, TYPE, r->in, r->want);
}

static void test_names(void **state)
{
    static const struct row {
        const char *name;
        struct span in;
        const char *want;
    } rows[] = {
        { "go escapes", ONE(DISPOSITION "name=\"file\"; filename=\"a\\\"b\\\\c;d.txt\""),
          "part file file 'a\"b\\c;d.txt': x end\nEND\n" },
        { "percent stays", ONE(DISPOSITION "name=\"f\"; filename=\"a%22b%0A\""),
          "part f file 'a%22b%0A': x end\nEND\n" },
        { "raw utf-8", ONE(DISPOSITION "name=\"f\"; filename=\"\xc3\xbc\xe2\x82\xac.txt\""),
          "part f file '\xc3\xbc\xe2\x82\xac.txt': x end\nEND\n" },
        { "latin-1", ONE(DISPOSITION "name=\"f\"; filename=\"\xfc.txt\""),
          "part f file '\xc3\xbc.txt': x end\nEND\n" },
        { "extended wins",
          ONE(DISPOSITION "name=f; filename*=utf-8''%e2%82%ac%20x; filename=\"plain\""),
          "part f file '\xe2\x82\xac x': x end\nEND\n" },
        { "extended comes later",
          ONE(DISPOSITION "name=f; filename=\"plain\"; filename*=UTF-8'en'a%2Fb"),
          "part f file 'a/b': x end\nEND\n" },
        { "extended in latin-1", ONE(DISPOSITION "name=f; filename*=iso-8859-1''%fc"),
          "part f file '\xc3\xbc': x end\nEND\n" },
        { "extended without charset", ONE(DISPOSITION "name=f; filename*=a%20b"),
          "part f file 'a b': x end\nEND\n" },
        { "drive", ONE(DISPOSITION "name=f; filename=\"C:\\dir\\new.txt\""),
          "part f file 'new.txt': x end\nEND\n" },
        { "share", ONE(DISPOSITION "name=f; filename=\"\\\\\\\\host\\share\\f\""),
          "part f file 'f': x end\nEND\n" },
        { "other backslashes stay", ONE(DISPOSITION "name=f; filename=\"a\\b\\c\""),
          "part f file 'a\\b\\c': x end\nEND\n" },
        { "backslash last", ONE(DISPOSITION "name=f; filename=\"dir\\\""),
          "part f file 'dir\\': x end\nEND\n" },
        { "path", ONE(DISPOSITION "name=\"f\"; filename=\"/a/../b\""),
          "part f file '/a/../b': x end\nEND\n" },
        { "empty filename", ONE(DISPOSITION "name=\"f\"; filename=\"\""),
          "part f file '': x end\nEND\n" },
        { "empty name", ONE(DISPOSITION "name=\"\""), "part : x end\nEND\n" },
        { "case and blanks", ONE("content-DISPOSITION:form-data ;  NAME = \"f\" ;FileName = y"),
          "part f file 'y': x end\nEND\n" },
        { "control byte",
          ONE(DISPOSITION "name=f; filename=\"a\x01"
                          "b\""),
          "part f file 'a\x01"
          "b': x end\nEND\n" },
        { "other fields", ONE("X: y\r\n" DISPOSITION "name=f\r\nContent-Transfer-Encoding: binary"),
          "part f: x end\nEND\n" },
        { "no name", ONE(DISPOSITION "filename=\"y\""), "BAD 3 a part of the form has no name\n" },
        { "no disposition", ONE("Content-Type: a/b"), "BAD 3 a part of the form has no name\n" },
        { "no head", BYTES("--XX\r\n\r\nx\r\n--XX--"), "BAD 3 a part of the form has no name\n" },
        { "folded", ONE(DISPOSITION "name=f;\r\n filename=x"), "BAD 7 folded header line\n" },
        { "bare LF", BYTES("--XX\r\n" DISPOSITION "name=f\n\n"),
          "BAD 7 a line ends in a bare LF\n" },
        { "bare CR", BYTES("--XX\r\n" DISPOSITION "name=f\r\n\rx"),
          "BAD 7 bare CR in the head of a part\n" },
        { "NUL", ONE(DISPOSITION "name=f; filename=\"a\0b\""),
          "BAD 7 control byte in the value of header 'content-disposition'\n" },
        { "NUL, escaped", ONE(DISPOSITION "name=f; filename*=a%00b"),
          "BAD 7 NUL in the file name of a part\n" },
    };

    EACH(r, rows)
        check(r->name, NULL, TYPE, r->in, r->want);
}

static void test_content_types(void **state)
{
    static const struct span body =
        BYTES("--XX\r\n" DISPOSITION "name=\xc3\xbc\r\n\r\n1\r\n--XX--");
    static const struct row {
        const char *type, *want;
    } rows[] = {
        { TYPE, "part \xc3\xbc: 1 end\nEND\n" },
        { "Multipart/Form-Data;BOUNDARY=\"XX\"", "part \xc3\xbc: 1 end\nEND\n" },
        { "multipart/form-data; charset=utf-8; boundary=XX; x=y", "part \xc3\xbc: 1 end\nEND\n" },
        { TYPE "; charset=ISO-8859-1", "part \xc3\x83\xc2\xbc: 1 end\nEND\n" },
        { "multipart/form-data", "BAD 2 no boundary in the content type\n" },
        { "multipart/form-data; boundary=", "BAD 2 no boundary in the content type\n" },
        { "multipart/form-data; boundary=\"\"", "BAD 2 no boundary in the content type\n" },
        { "multipart/form-data; boundary=\"a\tb\"",
          "BAD 7 malformed boundary in the content type\n" },
        { "multipart/mixed; boundary=XX",
          "BAD 1 content type 'multipart/mixed' is not multipart/form-data\n" },
        { "", "BAD 1 content type '' is not multipart/form-data\n" },
        { NULL, "BAD 1 content type '' is not multipart/form-data\n" },
    };
    char long_type[400] = "multipart/form-data; boundary=";

    EACH(r, rows)
        check(r->type, NULL, r->type, body, r->want);
    memset(long_type + strlen(long_type), 'x', 251);
    check("long", NULL, long_type, body, "BAD 7 malformed boundary in the content type\n");
}

static void test_limits(void **state)
{
    static const struct multipart_limits tight = { 1, 2, 80, 2 };
#define FIELD "--XX\r\n" DISPOSITION "name=f\r\n\r\n\r\n"
#define FILE_ "--XX\r\n" DISPOSITION "name=f; filename=g\r\n\r\n\r\n"

    check("files", &tight, TYPE, SPAN(FILE_ FILE_ "--XX--"),
          "part f file 'g':  end\nBAD 4 more than 1 files in the form\n");
    check(
        "fields", &tight, TYPE, SPAN(FIELD FILE_ FIELD FIELD "--XX--"),
        "part f:  end\npart f file 'g':  end\npart f:  end\nBAD 5 more than 2 fields in the form\n");
    check("head bytes", &tight, TYPE,
          SPAN("--XX\r\n" DISPOSITION
               "name=f; filename=0123456789012345678901234567890123456789\r\n\r\n"),
          "BAD 6 the head of a part is larger than 80 bytes\n");
    check("head fields", &tight, TYPE, SPAN("--XX\r\na:\r\nb:\r\nc:\r\n\r\n"),
          "BAD 6 more than 2 header fields\n");
}

/* The vector search: a delimiter at every offset of a body much longer than a vector, behind decoys. */
static void test_every_offset(void **state)
{
    for (size_t fill = 0; fill < 200; fill++) {
        OWN(buf_done) struct buf body = BUF_INIT(4096), want = BUF_INIT(4096);
        struct err e;

        assert_int_equal(buf_add(&body, SPAN("--XX\r\n" DISPOSITION "name=a\r\n\r\n"), &e), 0);
        assert_int_equal(buf_add(&want, SPAN("part a: "), &e), 0);
        for (size_t i = 0; i < fill; i++) {
            uint8_t c = (uint8_t) "\r\n--X\rX"[i % 7];

            assert_int_equal(buf_addc(&body, c, &e), 0);
            assert_int_equal(buf_addc(&want, c, &e), 0);
        }
        assert_int_equal(buf_add(&body, SPAN("\r\n--XX--"), &e), 0);
        assert_int_equal(buf_add(&want, SPAN(" end\nEND\n"), &e), 0);
        check("offset", NULL, TYPE, buf_span(&body), buf_cstr(&want));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),        cmocka_unit_test(test_names),
        cmocka_unit_test(test_content_types), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_every_offset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
