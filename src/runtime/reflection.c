#include "runtime/reflection.h"

#include "base/str.h"
#include "http/grpc.h"
#include "proto/pb.h"
#include "proto/reflection_v1.pb-c.h"

/* The generated names are longer than a line. */
typedef Grpc__Reflection__V1__ServerReflectionRequest request;
typedef Grpc__Reflection__V1__ServerReflectionResponse response;

#define ASKS(what) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##what
#define SAYS(what) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##what
#define ASKS_INT   _GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST__CASE_IS_INT_SIZE

/* Field numbers of google/protobuf/descriptor.proto. */
enum { SET_FILE = 1 };
enum { NAME = 1 }; /* in everything that has one */
enum {
    FILE_PACKAGE = 2,
    FILE_DEPENDENCY = 3,
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    FILE_EXTENSION = 7,
};
enum {
    MESSAGE_FIELD = 2,
    MESSAGE_NESTED = 3,
    MESSAGE_ENUM = 4,
    MESSAGE_EXTENSION = 6,
    MESSAGE_ONEOF = 8
};
enum { ENUM_VALUE = 2, SERVICE_METHOD = 2 };

/* Walking. The set is ours, so a malformed one just has no more fields. */

static bool next(struct span *rest, struct pb_field *f)
{
    struct err e;

    return pb_next(rest, f, &e) > 0;
}

/* The next field of that number. */
static bool next_of(struct span *rest, uint32_t number, struct span *ret)
{
    struct pb_field f;

    while (next(rest, &f)) {
        if (f.number == number) {
            *ret = f.bytes;
            return true;
        }
    }
    return false;
}

static struct span first_of(struct span in, uint32_t number)
{
    struct span found = SPAN_NONE;

    (void)next_of(&in, number, &found);
    return found;
}

/* Is `symbol` this thing ("Name"), or in it ("Name.rest", *ret_rest)? */
static bool is_named(struct span thing, struct span symbol, struct span *ret_rest)
{
    struct span name = first_of(thing, NAME);

    *ret_rest = SPAN_NONE;
    if (name.n == 0 || symbol.n < name.n || !span_eq(span_slice(symbol, 0, name.n), name))
        return false;
    if (symbol.n == name.n)
        return true;
    if (symbol.p[name.n] != '.')
        return false;
    *ret_rest = span_skip(symbol, name.n + 1);
    return ret_rest->n > 0;
}

static bool has_leaf(struct span in, uint32_t number, struct span symbol)
{
    struct span leaf;

    while (next_of(&in, number, &leaf)) {
        if (span_eq(first_of(leaf, NAME), symbol))
            return true;
    }
    return false;
}

/* Values of an enum belong to the scope around it, as in C. */
static bool enum_has(struct span in, struct span symbol)
{
    return span_eq(first_of(in, NAME), symbol) || has_leaf(in, ENUM_VALUE, symbol);
}

static bool message_has(struct span in, struct span symbol)
{
    struct pb_field f;
    struct span rest;

    if (!is_named(in, symbol, &rest))
        return false;
    if (rest.n == 0)
        return true;
    if (has_leaf(in, MESSAGE_FIELD, rest) || has_leaf(in, MESSAGE_EXTENSION, rest) ||
        has_leaf(in, MESSAGE_ONEOF, rest))
        return true;
    while (next(&in, &f)) {
        if (f.number == MESSAGE_NESTED ? message_has(f.bytes, rest)
                                       : f.number == MESSAGE_ENUM && enum_has(f.bytes, rest))
            return true;
    }
    return false;
}

static bool service_has(struct span in, struct span symbol)
{
    struct span rest;

    return is_named(in, symbol, &rest) && (rest.n == 0 || has_leaf(in, SERVICE_METHOD, rest));
}

/* The symbol without the file's package, or nothing. */
static struct span without_package(struct span file, struct span symbol)
{
    struct span package = first_of(file, FILE_PACKAGE);

    if (package.n == 0)
        return symbol;
    if (symbol.n <= package.n || symbol.p[package.n] != '.' ||
        !span_eq(span_slice(symbol, 0, package.n), package))
        return SPAN_NONE;
    return span_skip(symbol, package.n + 1);
}

static bool file_has(struct span file, struct span symbol)
{
    struct span in = file, local = without_package(file, symbol);
    struct pb_field f;

    if (local.n == 0)
        return false;
    if (has_leaf(file, FILE_EXTENSION, local))
        return true;
    while (next(&in, &f)) {
        if ((f.number == FILE_MESSAGE && message_has(f.bytes, local)) ||
            (f.number == FILE_ENUM && enum_has(f.bytes, local)) ||
            (f.number == FILE_SERVICE && service_has(f.bytes, local)))
            return true;
    }
    return false;
}

static bool find_by_name(struct span set, struct span name, struct span *ret_file)
{
    while (next_of(&set, SET_FILE, ret_file)) {
        if (span_eq(first_of(*ret_file, NAME), name))
            return true;
    }
    return false;
}

static bool find_by_symbol(struct span set, struct span symbol, struct span *ret_file)
{
    while (next_of(&set, SET_FILE, ret_file)) {
        if (file_has(*ret_file, symbol))
            return true;
    }
    return false;
}

/* Answers. */

struct answer {
    struct span set;
    const request *req;
    struct buf *out;
};

static int send(const struct answer *a, response *r, struct err *e)
{
    r->valid_host = a->req->host;
    r->original_request = (request *)(uintptr_t)a->req;
    return pb_pack(&r->base, a->out, e);
}

static int answer_missing(const struct answer *a, const char *what, const char *name, struct err *e)
{
    Grpc__Reflection__V1__ErrorResponse error = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;
    response r = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    char text[160];

    (void)snprintf(text, sizeof text, "%s not found: %.100s", what, name);
    text[strlen(text) - str_utf8_partial_tail(span_cstr(text))] =
        '\0'; /* the cut may halve a character */
    error.error_code = GRPC_NOT_FOUND;
    error.error_message = text;
    r.message_response_case = SAYS(ERROR_RESPONSE);
    r.error_response = &error;
    return send(a, &r, e);
}

/* A file with all it imports, each once, so that a client need not ask again. */
static int answer_file(const struct answer *a, struct span file, struct err *e)
{
    Grpc__Reflection__V1__FileDescriptorResponse files =
        GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
    response r = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    ProtobufCBinaryData list[REFLECTION_FILES_MAX];
    size_t n = 0;

    list[n++] = (ProtobufCBinaryData){ file.n, (uint8_t *)(uintptr_t)file.p };
    for (size_t i = 0; i < n; i++) { /* the list grows while we walk it */
        struct span in = span_of(list[i].data, list[i].len), name, import;

        while (next_of(&in, FILE_DEPENDENCY, &name)) {
            bool is_new = find_by_name(a->set, name, &import);

            for (size_t k = 0; k < n && is_new; k++)
                is_new = list[k].data != import.p;
            if (is_new && n < LEN(list))
                list[n++] = (ProtobufCBinaryData){ import.n, (uint8_t *)(uintptr_t)import.p };
        }
    }
    files.n_file_descriptor_proto = n;
    files.file_descriptor_proto = list;
    r.message_response_case = SAYS(FILE_DESCRIPTOR_RESPONSE);
    r.file_descriptor_response = &files;
    return send(a, &r, e);
}

static int by_name(const void *a, const void *b)
{
    const Grpc__Reflection__V1__ServiceResponse *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static int answer_services(const struct answer *a, struct err *e)
{
    Grpc__Reflection__V1__ListServiceResponse services =
        GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
    Grpc__Reflection__V1__ServiceResponse rows[REFLECTION_SERVICES_MAX],
        *list[REFLECTION_SERVICES_MAX];
    response r = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    char names[REFLECTION_SERVICES_MAX][128];
    struct span set = a->set, file, service;
    size_t n = 0;

    while (next_of(&set, SET_FILE, &file)) {
        struct span in = file, package = first_of(file, FILE_PACKAGE);

        while (n < LEN(rows) && next_of(&in, FILE_SERVICE, &service)) {
            (void)snprintf(names[n], sizeof names[n], "%.*s%s%.*s", SPAN_ARG(package),
                           package.n ? "." : "", SPAN_ARG(first_of(service, NAME)));
            grpc__reflection__v1__service_response__init(&rows[n]);
            rows[n].name = names[n];
            list[n] = &rows[n];
            n++;
        }
    }
    qsort(list, n, sizeof list[0], by_name);
    services.n_service = n;
    services.service = list;
    r.message_response_case = SAYS(LIST_SERVICES_RESPONSE);
    r.list_services_response = &services;
    return send(a, &r, e);
}

/* Nothing of ours has extensions, but asking about a type of ours is not wrong. */
static int answer_extensions(const struct answer *a, const char *type, struct err *e)
{
    Grpc__Reflection__V1__ExtensionNumberResponse numbers =
        GRPC__REFLECTION__V1__EXTENSION_NUMBER_RESPONSE__INIT;
    response r = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    struct span file;

    if (!find_by_symbol(a->set, span_cstr(type), &file))
        return answer_missing(a, "type", type, e);
    numbers.base_type_name = (char *)(uintptr_t)type;
    r.message_response_case = SAYS(ALL_EXTENSION_NUMBERS_RESPONSE);
    r.all_extension_numbers_response = &numbers;
    return send(a, &r, e);
}

int reflection_answer(struct span set, struct span question, struct buf *out, struct err *e)
{
    OWN(pb_done)
    request *req = (request *)pb_unpack(
        &grpc__reflection__v1__server_reflection_request__descriptor, question, e);
    struct answer a = { set, req, out };
    struct span file;

    if (!req)
        return -1;
    switch (req->message_request_case) {
    case ASKS(FILE_BY_FILENAME):
        if (!find_by_name(set, span_cstr(req->file_by_filename), &file))
            return answer_missing(&a, "file", req->file_by_filename, e);
        return answer_file(&a, file, e);
    case ASKS(FILE_CONTAINING_SYMBOL):
        if (!find_by_symbol(set, span_cstr(req->file_containing_symbol), &file))
            return answer_missing(&a, "symbol", req->file_containing_symbol, e);
        return answer_file(&a, file, e);
    case ASKS(FILE_CONTAINING_EXTENSION):
        return answer_missing(&a, "extension", req->file_containing_extension->containing_type, e);
    case ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE):
        return answer_extensions(&a, req->all_extension_numbers_of_type, e);
    case ASKS(LIST_SERVICES):
        return answer_services(&a, e);
    case ASKS(_NOT_SET):
    case ASKS_INT:
        break;
    }
    return err_set(e, ERR_INVALID, "the request asks nothing");
}
