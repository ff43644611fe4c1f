/* json_bench: base/json beside jansson and cJSON on one document, interleaved in one run.
 *
 *     json_bench [-o json] [FILE]        FILE defaults to tests/bench/pod.json, a 5 KB Pod
 *
 * Each round runs every library on every task for a few milliseconds; the figure is the median of the
 * rounds, so that a neighbour's burst hits all of them alike. Output goes to a fresh block each time,
 * as jansson's and cJSON's does. */
#include "bench/json_bench.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/time.h"

#define ROUNDS             41
#define ROUND_US           3000
#define DOCUMENT_MAX_BYTES (16 * 1024 * 1024)

static void must(bool is_fine, const char *what)
{
    if (!is_fine) {
        fprintf(stderr, "json_bench: %s failed\n", what);
        exit(1);
    }
}

static void *our_parse(struct span text)
{
    struct json_doc *doc = NULL;
    struct err e;

    return json_parse(text, NULL, &doc, &e) < 0 ? NULL : doc;
}

static size_t our_write(void *doc)
{
    OWN(buf_done) struct buf out = BUF_INIT(DOCUMENT_MAX_BYTES);
    struct err e;

    return json_write(json_doc_root(doc), &out, &e) < 0 ? 0 : out.n;
}

static void our_drop(void *doc)
{
    json_doc_unref(doc);
}

static const struct json_bench_lib silica_lib = { "silica", our_parse, our_write, our_drop };

#define LIBS 3
static const struct json_bench_lib *const libs[LIBS] = { &silica_lib, &json_bench_jansson,
                                                         &json_bench_cjson };

enum task { TASK_PARSE, TASK_WRITE, TASK_BOTH, TASK_COUNT };
static const char *const task_names[TASK_COUNT] = { "parse", "write", "parse+write" };

static void once(const struct json_bench_lib *lib, enum task task, struct span text, void *kept)
{
    void *doc = task == TASK_WRITE ? kept : lib->parse(text);

    must(doc, lib->name);
    if (task != TASK_PARSE)
        must(lib->write(doc) > 0, lib->name);
    if (task != TASK_WRITE)
        lib->drop(doc);
}

/* Microseconds per operation, over at least ROUND_US. */
static double round_us(const struct json_bench_lib *lib, enum task task, struct span text,
                       void *kept)
{
    uint64_t start = time_mono_us(), now;
    unsigned count = 0;

    do {
        for (int i = 0; i < 8; i++)
            once(lib, task, text, kept);
        count += 8;
        now = time_mono_us();
    } while (now - start < ROUND_US);
    return (double)(now - start) / count;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void measure(struct span text, double us[TASK_COUNT][LIBS])
{
    static double all[TASK_COUNT][LIBS][ROUNDS];
    void *kept[LIBS];

    for (size_t l = 0; l < LIBS; l++) {
        kept[l] = libs[l]->parse(text);
        must(kept[l], libs[l]->name);
    }
    for (size_t r = 0; r < ROUNDS; r++)
        for (size_t t = 0; t < TASK_COUNT; t++)
            for (size_t l = 0; l < LIBS; l++)
                all[t][l][r] = round_us(libs[l], (enum task)t, text, kept[l]);
    for (size_t l = 0; l < LIBS; l++)
        libs[l]->drop(kept[l]);
    for (size_t t = 0; t < TASK_COUNT; t++)
        for (size_t l = 0; l < LIBS; l++) {
            qsort(all[t][l], ROUNDS, sizeof(double), by_value);
            us[t][l] = all[t][l][ROUNDS / 2];
        }
}

static void print_table(struct span text, double us[TASK_COUNT][LIBS])
{
    printf("%-12s", "us/op");
    for (size_t l = 0; l < LIBS; l++)
        printf("%10s", libs[l]->name);
    for (size_t l = 1; l < LIBS; l++)
        printf("   vs %-7s", libs[l]->name);
    printf("%10s\n", "MB/s");
    for (size_t t = 0; t < TASK_COUNT; t++) {
        printf("%-12s", task_names[t]);
        for (size_t l = 0; l < LIBS; l++)
            printf("%10.2f", us[t][l]);
        for (size_t l = 1; l < LIBS; l++)
            printf("%11.1fx ", us[t][l] / us[t][0]);
        printf("%9.0f\n", (double)text.n / us[t][0]);
    }
}

static void print_json(struct span text, const char *file, double us[TASK_COUNT][LIBS])
{
    OWN(buf_done) struct buf out = BUF_INIT(64 * 1024);
    struct json_out o;
    struct err e;

    json_out_init(&o, &out, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "bench"), json_out_cstr(&o, "json");
    json_out_key(&o, "file"), json_out_cstr(&o, file);
    json_out_key(&o, "bytes"), json_out_u64(&o, text.n);
    json_out_key(&o, "rows"), json_out_array_begin(&o);
    for (size_t t = 0; t < TASK_COUNT; t++) {
        json_out_object_begin(&o);
        json_out_key(&o, "task"), json_out_cstr(&o, task_names[t]);
        for (size_t l = 0; l < LIBS; l++) {
            char key[32];

            (void)snprintf(key, sizeof key, "%s_us", libs[l]->name);
            json_out_key(&o, key), json_out_double(&o, us[t][l]);
            (void)snprintf(key, sizeof key, "vs_%s", libs[l]->name);
            if (l)
                json_out_key(&o, key), json_out_double(&o, us[t][l] / us[t][0]);
        }
        json_out_object_end(&o);
    }
    json_out_array_end(&o);
    json_out_object_end(&o);
    must(json_out_end(&o, &e) == 0, "output");
    printf("%s\n", buf_cstr(&out));
}

int main(int argc, char **argv)
{
    bool is_json = argc > 2 && strcmp(argv[1], "-o") == 0 && strcmp(argv[2], "json") == 0;
    const char *file = argc > 1 + 2 * is_json ? argv[1 + 2 * is_json] : "tests/bench/pod.json";
    OWN(buf_done) struct buf text = BUF_INIT(DOCUMENT_MAX_BYTES);
    double us[TASK_COUNT][LIBS];
    struct err e;

    if (fd_read_file(file, &text, &e) < 0) {
        fprintf(stderr, "json_bench: %s\n", e.msg);
        return 1;
    }
    measure(buf_span(&text), us);
    if (is_json)
        print_json(buf_span(&text), file, us);
    else
        print_table(buf_span(&text), us);
    return 0;
}
