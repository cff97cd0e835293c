#include "web/respond.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

dt_web_client *dt_web_client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

void dt_web_set_phase(dt_web_site *site, dt_web_client *client, dt_web_phase phase)
{
    if (client != NULL)
        dt_web_admission_phase(&site->admission, client, phase);
}

/* --- streamed answers */

struct dt_web_parts {
    dt_web_site *site;
    dt_web_client *client;
    dt_web_stream stream;
    dt_strbuf part;
    size_t at; /* bytes of the part that were sent */
    bool more;
};

static void parts_free(void *context)
{
    dt_web_parts *s = context;

    if (s->stream.free != NULL)
        s->stream.free(s->stream.state);
    dt_strbuf_release(&s->part);
    free(s);
}

static dt_status part_make(dt_web_parts *s, dt_store *store, dt_error *err)
{
    dt_strbuf_reset(&s->part);
    s->at = 0;
    return s->stream.next(s->stream.state, store, &s->part, &s->more, err);
}

static dt_status part_next(dt_web_parts *s, dt_error *err)
{
    dt_web_handle *handle;
    dt_status st;

    /* The stream takes a handle of the store when there is something to read. */
    if (s->stream.waits)
        return part_make(s, NULL, err);
    st = dt_web_stores_take(&handle, &s->site->stores, DT_WEB_EXPENSIVE, err);

    if (st != DT_OK)
        return st;
    st = part_make(s, handle->store, err);
    dt_web_stores_give_back(&s->site->stores, handle);
    return st;
}

/* MHD's reader: copies the rest of the current part, or makes the next part. */
static ssize_t part_read(void *context, uint64_t position, char *out, size_t most)
{
    dt_error err = DT_ERROR_INIT;
    dt_web_parts *s = context;
    size_t left;

    while (s->at == s->part.length && s->more) {
        dt_web_set_phase(s->site, s->client, DT_WEB_WORKING);
        if (part_next(s, &err) != DT_OK) {
            dt_log_warn("a response was aborted: %s", err.message);
            return MHD_CONTENT_READER_END_WITH_ERROR;
        }
        dt_web_set_phase(s->site, s->client, DT_WEB_ANSWERING);
    }
    left = s->part.length - s->at;
    if (left == 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (left < most)
        most = left;
    memcpy(out, s->part.data + s->at, most);
    s->at += most;
    return (ssize_t)most;
}

dt_status dt_web_parts_begin(dt_web_parts **out, dt_web_site *site, dt_web_client *client,
                             dt_web_reply *reply, dt_store *store, dt_error *err)
{
    dt_web_parts *s = dt_calloc(1, sizeof(*s));
    dt_status st;

    *out = NULL;
    s->site = site;
    s->client = client;
    s->stream = reply->stream;
    reply->stream = (dt_web_stream){0};
    dt_strbuf_init(&s->part);
    st = part_make(s, store, err);
    if (st == DT_OK && s->more) {
        *out = s;
        return DT_OK;
    }
    if (st == DT_OK) {
        reply->length = s->part.length;
        reply->owned = dt_strbuf_detach(&s->part);
    }
    parts_free(s);
    return st;
}

/* --- replies */

static struct MHD_Response *response_of(dt_web_reply *reply, dt_web_parts *parts)
{
    if (parts != NULL)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, DT_WEB_PART_BYTES, part_read,
                                                 parts, parts_free);
    if (reply->owned != NULL)
        return MHD_create_response_from_buffer(reply->length, reply->owned, MHD_RESPMEM_MUST_FREE);
    if (reply->bytes != NULL)
        return MHD_create_response_from_buffer(reply->length, (void *)(uintptr_t)reply->bytes,
                                               MHD_RESPMEM_PERSISTENT);
    return NULL;
}

static bool header_add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool file_name_add(struct MHD_Response *response, const char *name)
{
    char text[96];

    snprintf(text, sizeof(text), "attachment; filename=\"%s\"", name);
    return header_add(response, "Content-Disposition", text);
}

static bool headers_add(struct MHD_Response *response, const dt_web_reply *reply)
{
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        if (!header_add(response, headers[i].name, headers[i].value))
            return false;
    return header_add(response, "Content-Type", reply->type) &&
           (reply->status != 405 || header_add(response, "Allow", "GET, HEAD")) &&
           (reply->status != 503 || header_add(response, "Retry-After", "1")) &&
           (reply->status != 401 || header_add(response, "WWW-Authenticate", "Bearer")) &&
           (reply->file_name == NULL || file_name_add(response, reply->file_name)) &&
           (reply->location == NULL || header_add(response, "Location", reply->location)) &&
           (reply->cookie[0] == '\0' || header_add(response, "Set-Cookie", reply->cookie)) &&
           /* the connection is closed: no further request is accepted */
           ((reply->status != 403 && reply->status != 405 && !reply->close) ||
            header_add(response, "Connection", "close"));
}

enum MHD_Result dt_web_respond(dt_web_site *site, struct MHD_Connection *connection,
                               dt_web_reply *reply, dt_web_parts *parts)
{
    struct MHD_Response *response = response_of(reply, parts);
    enum MHD_Result result = MHD_NO; /* the connection is closed */

    if (response == NULL) {
        free(reply->owned);
        if (parts != NULL)
            parts_free(parts);
        return MHD_NO;
    }
    if (headers_add(response, reply)) {
        dt_web_set_phase(site, dt_web_client_of(connection), DT_WEB_ANSWERING);
        result = MHD_queue_response(connection, (unsigned)reply->status, response);
    }
    MHD_destroy_response(response);
    return result;
}
