/* Serve a pilot to Airworthy from C (C99 and POSIX sockets), as one header to be copied; docs/howto/external_pilots.md.
 *
 *     #include "airworthy_pilot.h"
 *
 *     static int command(const aw_message *seen, double *out, void *mine) {
 *         const aw_array *position = aw_find(seen, "position");      // (flights, 3), little-endian doubles
 *         ...                                                        // out: flights x width numbers
 *         return 0;                                                  // anything else ends the flight
 *     }
 *
 *     int main(void) {
 *         aw_pilot pilot = {"climber", "velocity", 4, "[\"position\"]", 0.0, NULL, command, NULL};
 *         return aw_serve(&pilot, 5005);
 *     }
 *
 * Each connection is a batch of flights (`batched`), served one after the other by this process. The machine must be little-endian.
 */
#ifndef AIRWORTHY_PILOT_H
#define AIRWORTHY_PILOT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AW_PROTOCOL 2
#define AW_ARRAYS 96          /* most arrays of a message */
#define AW_HEADER (1u << 20)  /* longest header [bytes] */
#define AW_BYTES (1u << 28)   /* most bytes of a message's arrays */

typedef struct {
    char name[64];
    char type[4];        /* "<f8", "<f4", "<i8", "|b1" or "|u1" */
    size_t rank, shape[8], count, size;
    const void *data;    /* `count` numbers in C order, aligned to 8 bytes; state is always "<f8" */
} aw_array;

typedef struct {
    char kind[32];
    char *header;        /* whole JSON text, ends with 0 */
    size_t arrays;
    aw_array array[AW_ARRAYS];
    unsigned char *memory;
} aw_message;

typedef struct {
    const char *name, *level;
    size_t width;        /* numbers of a command at that level */
    const char *observes;/* JSON list of names */
    double rate;         /* decisions per second; 0: whenever it is asked */
    int (*reset)(const aw_message *task, void *mine);                 /* may be NULL; not 0 ends the flight */
    int (*command)(const aw_message *seen, double *out, void *mine);  /* fills flights x width numbers */
    void *mine;
} aw_pilot;

/* Return an array of a message by name; NULL where there is none. */
static const aw_array *aw_find(const aw_message *message, const char *name) {
    for (size_t k = 0; k < message->arrays; k++)
        if (strcmp(message->array[k].name, name) == 0) return &message->array[k];
    return NULL;
}

static int aw_exactly(int link, void *data, size_t size) {
    unsigned char *at = (unsigned char *)data;
    while (size > 0) {
        ssize_t got = read(link, at, size);
        if (got <= 0) return -1;
        at += got;
        size -= (size_t)got;
    }
    return 0;
}

/* A connection that the other end has closed, as it does with one that is too slow, is no signal that ends the program. */
#ifdef MSG_NOSIGNAL
#define AW_SEND_FLAGS MSG_NOSIGNAL
#else
#define AW_SEND_FLAGS 0 /* of systems that have SO_NOSIGPIPE instead */
#endif

static int aw_all(int link, const void *data, size_t size) {
    const unsigned char *at = (const unsigned char *)data;
    while (size > 0) {
        ssize_t sent = send(link, at, size, AW_SEND_FLAGS);
        if (sent <= 0) return -1;
        at += sent;
        size -= (size_t)sent;
    }
    return 0;
}

/* Copy the JSON text behind `"` into `out`; names and kinds here hold no escapes. Return what follows it, NULL where it is none. */
static const char *aw_text(const char *at, char *out, size_t most) {
    size_t n = 0;
    while (*at == ' ' || *at == ',' || *at == '[') at++;
    if (*at++ != '"') return NULL;
    while (*at && *at != '"') {
        if (*at == '\\' || n + 1 >= most) return NULL;
        out[n++] = *at++;
    }
    out[n] = 0;
    return *at == '"' ? at + 1 : NULL;
}

/* Read `[[name, type, [shape]], ...]`. */
static int aw_listed(const char *at, aw_message *message) {
    at = strstr(at, "\"arrays\":");
    if (!at || !(at = strchr(at, '['))) return -1;
    at++;
    for (;;) {
        while (*at == ' ' || *at == ',') at++;
        if (*at == ']') return 0;
        if (*at != '[' || message->arrays >= AW_ARRAYS) return -1;
        aw_array *array = &message->array[message->arrays++];
        memset(array, 0, sizeof *array);
        if (!(at = aw_text(at, array->name, sizeof array->name)) || !(at = aw_text(at, array->type, sizeof array->type))) return -1;
        array->count = 1;
        while (*at == ' ' || *at == ',') at++;
        if (*at++ != '[') return -1;
        while (*at != ']') {
            char *end;
            unsigned long length = strtoul(at, &end, 10);
            if (end == at || array->rank >= 8) return -1;
            array->shape[array->rank++] = (size_t)length;
            if (length && array->count > AW_BYTES / length) return -1;
            array->count *= (size_t)length;
            for (at = end; *at == ' ' || *at == ','; at++) {}
        }
        array->size = array->type[2] == '8' ? 8 : array->type[2] == '4' ? 4 : 1;
        for (at++; *at == ' '; at++) {}
        if (*at++ != ']') return -1;
    }
}

static void aw_free(aw_message *message) {
    free(message->header);
    free(message->memory);
    memset(message, 0, sizeof *message);
}

/* Receive the next message; 0, or -1 at the end. Call aw_free behind it. */
static int aw_receive(int link, aw_message *message) {
    uint32_t length;
    size_t total = 0;
    memset(message, 0, sizeof *message);
    if (aw_exactly(link, &length, 4) || length < 2 || length > AW_HEADER) return -1;
    if (!(message->header = (char *)calloc(length + 1u, 1)) || aw_exactly(link, message->header, length)) return -1;
    const char *kind = strstr(message->header, "\"kind\":");
    if (!kind || !aw_text(kind + 7, message->kind, sizeof message->kind) || aw_listed(message->header, message)) return -1;
    for (size_t k = 0; k < message->arrays; k++) total += (message->array[k].count * message->array[k].size + 7u) & ~(size_t)7u;
    if (total > AW_BYTES || !(message->memory = (unsigned char *)malloc(total + 8u))) return -1;
    total = 0;
    for (size_t k = 0; k < message->arrays; k++) {
        size_t size = message->array[k].count * message->array[k].size;
        if (aw_exactly(link, message->memory + total, size)) return -1;
        message->array[k].data = message->memory + total;
        total += (size + 7u) & ~(size_t)7u;
    }
    return 0;
}

/* Send a header, and the bytes of one array that it lists, or none. */
static int aw_send(int link, const char *header, const void *data, size_t size) {
    uint32_t length = (uint32_t)strlen(header);
    return aw_all(link, &length, 4) || aw_all(link, header, length) || aw_all(link, data, size);
}

/* Serve one connection until the other end closes it. */
static int aw_converse(const aw_pilot *pilot, int link) {
    char text[1024];
    aw_message message;
    int written = snprintf(text, sizeof text,
        "{\"kind\": \"hello\", \"arrays\": [], \"protocol\": %d, \"name\": \"%s\", \"level\": \"%s\", \"observes\": %s, \"rate\": %.17g, "
        "\"batched\": true}", AW_PROTOCOL, pilot->name, pilot->level, pilot->observes, pilot->rate);
    if (written < 0 || written >= (int)sizeof text || aw_send(link, text, NULL, 0)) return -1;
    while (aw_receive(link, &message) == 0) {
        int failed = 0;
        if (strcmp(message.kind, "reset") == 0) {
            failed = pilot->reset ? pilot->reset(&message, pilot->mine) : 0;
            if (!failed && aw_send(link, "{\"kind\": \"ready\", \"arrays\": []}", NULL, 0)) break;
        } else if (strcmp(message.kind, "observation") == 0) {
            const aw_array *now = aw_find(&message, "time");
            const char *tick = strstr(message.header, "\"tick\":");
            size_t flights = now ? now->count : 0;
            double *out = (double *)calloc(flights * pilot->width + 1u, sizeof *out);
            failed = !out || pilot->command(&message, out, pilot->mine);
            snprintf(text, sizeof text,
                     "{\"kind\": \"command\", \"tick\": %ld, \"arrays\": [[\"command\", \"<f8\", [%zu, %zu]]]}",
                     tick ? strtol(tick + 7, NULL, 10) : -1L, flights, pilot->width);
            int broken = !failed && aw_send(link, text, out, flights * pilot->width * sizeof *out);
            free(out);
            if (broken) break;
        } else {
            aw_free(&message);
            return 0;
        }
        aw_free(&message);
        if (failed && aw_send(link, "{\"kind\": \"failure\", \"arrays\": [], \"said\": \"it gave up\"}", NULL, 0)) return -1;
    }
    aw_free(&message);
    return 0;
}

/* Listen on a port of this machine, and serve connections one after the other; returns only where it cannot listen. */
static int aw_serve(const aw_pilot *pilot, int port) {
    int yes = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in place;
    memset(&place, 0, sizeof place);
    place.sin_family = AF_INET;
    place.sin_port = htons((uint16_t)port);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (listening < 0 || bind(listening, (struct sockaddr *)&place, sizeof place) || listen(listening, 4)) {
        perror("airworthy_pilot");
        return 1;
    }
    for (;;) {
        int link = accept(listening, NULL, NULL);
        if (link < 0) continue;
        setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
#ifdef SO_NOSIGPIPE
        setsockopt(link, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
        aw_converse(pilot, link);
        close(link);
    }
}

#endif
