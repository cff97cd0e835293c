#include "engine/device/upload_buffer.h"

#include <string.h>

#include "engine/device/queue.h"

#include "base/banned.h"

dt_status dt_feed_open(dt_feed *out, dt_device *device, size_t bytes, dt_error *err)
{
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->device = device;
    out->bytes = bytes;
    DT_TRY(device->alloc(device, &out->data, bytes, err));
    DT_TRY(device->host_alloc(device, &out->host, bytes, err));
    DT_TRY(device->queues->mark_open(device, &out->taken, err));
out:
    return st;
}

void dt_feed_close(dt_feed *feed)
{
    dt_device *device = feed->device;

    if (device == NULL)
        return;
    device->queues->mark_close(device, feed->taken);
    if (feed->host != NULL)
        device->host_free(device, feed->host);
    if (feed->data != NULL)
        device->free(device, feed->data);
    memset(feed, 0, sizeof(*feed));
}

dt_status dt_feed_begin(dt_feed *feed, dt_error *err)
{
    return feed->device->queues->wait(feed->device, feed->taken, err);
}

dt_status dt_feed_send(dt_feed *feed, dt_error *err)
{
    const dt_queues *queues = feed->device->queues;
    dt_status st = DT_OK;

    DT_TRY(queues->copy_in(feed->device, NULL, feed->data, feed->host, feed->bytes, err));
    DT_TRY(queues->record(feed->device, feed->taken, NULL, err));
out:
    return st;
}
