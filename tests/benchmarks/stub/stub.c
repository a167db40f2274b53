/* A search engine's stand-in that costs next to nothing and knows the truth about its own service times.
 *
 * One process, one thread, epoll, HTTP/1.1 with keep-alive. A path with `_search` is a search and waits for the
 * delay, one with `_bulk` is a sink, everything else is health and answered at once. All times are nanoseconds
 * of CLOCK_MONOTONIC, which every process of the host shares.
 *
 * Options, each with a value:
 *   --body-bytes B    length of a search answer (1500)
 *   --delay-ns D      from a search's last byte to the first byte of its answer (0)
 *   --slow-first N    the first N searches take --slow-ns instead
 *   --slow-ns S
 *   --stall-at-ns T   so long after the first search everything stops, like a stop-the-world collection,
 *   --stall-ns S      for so long
 *   --spin-ns P       how long before an answer is due the process begins to poll instead of sleeping (100000)
 *   --record FILE     written on SIGTERM: pairs of int64, the stall's begin and end first (0, 0 without one),
 *                     then when each search or bulk request was complete and when its answer was about to be
 *                     sent (0 for one that was never sent)
 *
 * The first line of standard output is the port. It dies with its parent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES = 64 * 1024, SINK_BYTES = 1024 * 1024, EVENTS = 64, CONNECTIONS = 1024 };
enum kind { HEALTH, SEARCH, BULK };
enum phase { READING_HEAD, READING_BODY, WAITING, SENDING };

struct answer {
    char *bytes;
    size_t length;
};

struct exchange {
    int64_t arrived_ns, sent_ns;
};

struct connection {
    int fd;
    enum phase phase;
    enum kind kind;
    size_t buffered;      /* bytes in `head` */
    int64_t body_left;    /* of the request, not read yet */
    int64_t due_ns;       /* when the answer goes out */
    size_t exchange;      /* its place in the record */
    size_t sent;          /* bytes of the answer that are out */
    bool wants_room;      /* the socket's buffer was full */
    char head[HEAD_BYTES];
};

struct options {
    long body_bytes, delay_ns, slow_first, slow_ns, stall_at_ns, stall_ns, spin_ns;
    const char *record;
};

static struct options options = {.body_bytes = 1500, .spin_ns = 100000};
static struct answer answers[3];
static struct connection *waiting[CONNECTIONS];
static size_t waiting_count;
static struct exchange *exchanges;
static size_t exchange_count, exchange_room;
static long searches;
static int64_t stall_begin_ns, stall_end_ns;
static int epoll_fd, timer_fd;
static char sink[SINK_BYTES];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct timespec timespec_of(int64_t ns) {
    return (struct timespec){.tv_sec = ns / 1000000000LL, .tv_nsec = ns % 1000000000LL};
}

/* ---- answers ---- */

static struct answer with_head(const char *body, size_t length) {
    char head[256];
    int head_length = snprintf(head, sizeof head,
        "HTTP/1.1 200 OK\r\nX-elastic-product: Elasticsearch\r\ncontent-type: application/json\r\n"
        "content-length: %zu\r\n\r\n", length);
    struct answer made = {malloc(head_length + length), head_length + length};
    if (!made.bytes) fail("malloc");
    memcpy(made.bytes, head, head_length);
    memcpy(made.bytes + head_length, body, length);
    return made;
}

/* One hit is stretched until the body has the length asked for, or the shortest that is valid. */
static struct answer search_answer(size_t length) {
    static const char before[] =
        "{\"took\":1,\"timed_out\":false,\"_shards\":{\"total\":1,\"successful\":1,\"skipped\":0,\"failed\":0},"
        "\"hits\":{\"total\":{\"value\":10000,\"relation\":\"gte\"},\"max_score\":null,\"hits\":[{\"_id\":\"1\","
        "\"_source\":{\"message\":\"";
    static const char after[] = "\"}}]}}";
    size_t fixed = sizeof before - 1 + sizeof after - 1;
    size_t padding = length > fixed ? length - fixed : 0;
    char *body = malloc(fixed + padding);
    if (!body) fail("malloc");
    memcpy(body, before, sizeof before - 1);
    memset(body + sizeof before - 1, 'x', padding);
    memcpy(body + sizeof before - 1 + padding, after, sizeof after - 1);
    struct answer made = with_head(body, fixed + padding);
    free(body);
    return made;
}

static void make_answers(void) {
    static const char health[] = "{\"status\":\"green\"}";
    static const char taken[] = "{\"took\":1,\"errors\":false,\"items\":[{\"index\":{\"status\":201}}]}";
    answers[HEALTH] = with_head(health, sizeof health - 1);
    answers[SEARCH] = search_answer(options.body_bytes);
    answers[BULK] = with_head(taken, sizeof taken - 1);
}

/* ---- connections ---- */

static void watch(struct connection *one, int change, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = one};
    if (epoll_ctl(epoll_fd, change, one->fd, &event) < 0) fail("epoll_ctl");
}

static void stop_waiting(struct connection *one) {
    for (size_t place = 0; place < waiting_count; place++)
        if (waiting[place] == one) waiting[place] = waiting[--waiting_count];
}

static void hang_up(struct connection *one) {
    stop_waiting(one);
    close(one->fd);
    one->fd = -1; /* freed when the events at hand are done: one of them may be its own */
}

/* The value of a header in a head that ends in "\r\n\r\n" and a 0; NULL when it is not there. */
static const char *header(const char *head, const char *name) {
    size_t length = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') return line + length + 1;
    }
    return NULL;
}

static enum kind kind_of(const char *head) {
    const char *end = strstr(head, "\r\n");
    const char *search = strstr(head, "_search"), *bulk = strstr(head, "_bulk");
    if (search && search < end) return SEARCH;
    return bulk && bulk < end ? BULK : HEALTH;
}

static int64_t delay_ns(enum kind kind) {
    if (kind != SEARCH) return 0;
    return searches++ < options.slow_first ? options.slow_ns : options.delay_ns;
}

static size_t record_arrival(int64_t arrived_ns) {
    if (exchange_count == exchange_room) {
        exchange_room = exchange_room ? 2 * exchange_room : 1 << 17;
        exchanges = realloc(exchanges, exchange_room * sizeof *exchanges);
        if (!exchanges) fail("realloc");
    }
    exchanges[exchange_count] = (struct exchange){arrived_ns, 0};
    return exchange_count++;
}

static void read_on(struct connection *one);

/* Push out what is left of the answer, then look at what the client has sent meanwhile. */
static void send_on(struct connection *one) {
    const struct answer *answer = &answers[one->kind];
    while (one->sent < answer->length) {
        ssize_t out = send(one->fd, answer->bytes + one->sent, answer->length - one->sent, MSG_NOSIGNAL);
        if (out < 0 && errno == EAGAIN) {
            if (!one->wants_room) watch(one, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
            one->wants_room = true;
            return;
        }
        if (out < 0) {
            hang_up(one);
            return;
        }
        one->sent += out;
    }
    if (one->wants_room) watch(one, EPOLL_CTL_MOD, EPOLLIN);
    one->wants_room = false;
    one->phase = READING_HEAD;
    if (one->buffered) read_on(one);
}

static void answer_now(struct connection *one) {
    one->phase = SENDING;
    one->sent = 0;
    if (one->kind != HEALTH) exchanges[one->exchange].sent_ns = now_ns();
    send_on(one);
}

static void request_complete(struct connection *one) {
    int64_t arrived_ns = now_ns();
    int64_t wait_ns = delay_ns(one->kind);
    if (one->kind != HEALTH) one->exchange = record_arrival(arrived_ns);
    if (one->kind == SEARCH && searches == 1 && options.stall_ns)
        stall_begin_ns = arrived_ns + options.stall_at_ns;
    if (wait_ns == 0) {
        answer_now(one);
        return;
    }
    one->phase = WAITING;
    one->due_ns = arrived_ns + wait_ns;
    waiting[waiting_count++] = one;
}

/* Reads the head when it is whole; what follows it in the buffer is body, or the next request. */
static void read_on(struct connection *one) {
    char *end = memmem(one->head, one->buffered, "\r\n\r\n", 4);
    if (!end) {
        if (one->buffered == HEAD_BYTES) hang_up(one);
        return;
    }
    size_t head_length = end + 4 - one->head;
    char last = *(end + 3);
    *(end + 3) = 0; /* for the searches below: no header needs its last "\n" */
    const char *length = header(one->head, "content-length");
    int64_t body = length ? strtoll(length, NULL, 10) : 0;
    one->kind = kind_of(one->head);
    bool refused = header(one->head, "transfer-encoding") != NULL || body < 0;
    bool asks = header(one->head, "expect") != NULL;
    *(end + 3) = last;
    if (refused) {
        hang_up(one);
        return;
    }
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (asks && send(one->fd, go_on, sizeof go_on - 1, MSG_NOSIGNAL) < 0) {
        hang_up(one);
        return;
    }
    size_t rest = one->buffered - head_length;
    size_t of_body = rest < (size_t)body ? rest : (size_t)body;
    one->buffered = rest - of_body;
    memmove(one->head, one->head + head_length + of_body, one->buffered);
    one->body_left = body - of_body;
    if (one->body_left)
        one->phase = READING_BODY;
    else
        request_complete(one);
}

static void receive(struct connection *one) {
    bool into_sink = one->phase == READING_BODY;
    size_t room = HEAD_BYTES - one->buffered;
    if (into_sink) room = one->body_left < SINK_BYTES ? (size_t)one->body_left : SINK_BYTES;
    if (room == 0) {
        hang_up(one); /* more pipelined than a client of ours ever sends */
        return;
    }
    ssize_t got = recv(one->fd, into_sink ? sink : one->head + one->buffered, room, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        hang_up(one);
    } else if (into_sink) {
        one->body_left -= got;
        if (one->body_left == 0) request_complete(one);
    } else {
        one->buffered += got;
        if (one->phase == READING_HEAD) read_on(one);
    }
}

static void welcome(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    if (fd >= CONNECTIONS) {
        close(fd);
        return;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct connection *one = calloc(1, sizeof *one);
    if (!one) fail("calloc");
    one->fd = fd;
    watch(one, EPOLL_CTL_ADD, EPOLLIN);
}

/* ---- time ---- */

static void answer_due(void) {
    for (size_t place = 0; place < waiting_count;) {
        struct connection *one = waiting[place];
        if (one->due_ns > now_ns()) {
            place++;
            continue;
        }
        waiting[place] = waiting[--waiting_count];
        answer_now(one);
        if (one->fd < 0) free(one);
    }
}

static void stall_when_due(void) {
    int64_t now = now_ns();
    if (!stall_begin_ns || stall_end_ns || now < stall_begin_ns) return;
    stall_begin_ns = now; /* as it really is: what was due until now has been sent */
    struct timespec until = timespec_of(stall_begin_ns + options.stall_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) continue;
    stall_end_ns = now_ns();
}

/* When something is to be done next without any event; INT64_MAX for never. */
static int64_t next_due_ns(void) {
    int64_t next = stall_begin_ns && !stall_end_ns ? stall_begin_ns : INT64_MAX;
    for (size_t place = 0; place < waiting_count; place++)
        if (waiting[place]->due_ns < next) next = waiting[place]->due_ns;
    return next;
}

/* Whether to poll instead of sleeping; else the timer is set for the moment when polling begins. */
static bool set_timer(int64_t next_ns) {
    static int64_t set_for_ns;
    if (next_ns == INT64_MAX) return false;
    int64_t wake_ns = next_ns - options.spin_ns;
    if (wake_ns <= now_ns()) return true;
    if (wake_ns != set_for_ns) {
        struct itimerspec at = {.it_value = timespec_of(wake_ns)};
        if (timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL) < 0) fail("timerfd_settime");
        set_for_ns = wake_ns;
    }
    return false;
}

/* ---- life ---- */

static void save_record(void) {
    if (!options.record) return;
    FILE *file = fopen(options.record, "wb");
    if (!file) fail(options.record);
    int64_t stall[2] = {stall_end_ns ? stall_begin_ns : 0, stall_end_ns};
    fwrite(stall, sizeof stall, 1, file);
    if (exchange_count) fwrite(exchanges, sizeof *exchanges, exchange_count, file);
    if (ferror(file) | fclose(file)) fail(options.record);
}

static void drain(int fd) {
    uint64_t expirations;
    if (read(fd, &expirations, sizeof expirations) < 0 && errno != EAGAIN) fail("read");
}

static void handle(struct connection *one, uint32_t events) {
    if (one->phase == SENDING && events & EPOLLOUT) send_on(one);
    if (one->fd >= 0 && events & ~EPOLLOUT) receive(one);
    if (one->fd < 0) free(one);
}

/* Until SIGTERM or SIGINT. */
static void serve(int listener, int signals) {
    int *sources[] = {&listener, &signals, &timer_fd};
    for (int number = 0; number < 3; number++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = sources[number]};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, *sources[number], &event) < 0) fail("epoll_ctl");
    }
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(epoll_fd, events, EVENTS, set_timer(next_due_ns()) ? 0 : -1);
        if (count < 0 && errno != EINTR) fail("epoll_wait");
        for (int number = 0; number < count; number++) {
            void *source = events[number].data.ptr;
            if (source == &signals) return;
            if (source == &timer_fd)
                drain(timer_fd);
            else if (source == &listener)
                welcome(listener);
            else
                handle(source, events[number].events);
        }
        answer_due();
        stall_when_due();
    }
}

static void read_options(int count, char **words) {
    struct { const char *name; long *value; } known[] = {
        {"--body-bytes", &options.body_bytes}, {"--delay-ns", &options.delay_ns},
        {"--slow-first", &options.slow_first}, {"--slow-ns", &options.slow_ns},
        {"--stall-at-ns", &options.stall_at_ns}, {"--stall-ns", &options.stall_ns},
        {"--spin-ns", &options.spin_ns},
    };
    for (int place = 1; place + 1 < count; place += 2) {
        bool found = strcmp(words[place], "--record") == 0;
        if (found) options.record = words[place + 1];
        for (size_t number = 0; number < sizeof known / sizeof *known; number++)
            if (strcmp(words[place], known[number].name) == 0) {
                *known[number].value = strtol(words[place + 1], NULL, 10);
                found = true;
            }
        if (!found) {
            fprintf(stderr, "unknown option %s\n", words[place]);
            exit(2);
        }
    }
}

static int listen_anywhere(void) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 256) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        fail("listen");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

int main(int count, char **words) {
    read_options(count, words);
    make_answers();
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    sigprocmask(SIG_BLOCK, &ending, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int signals = signalfd(-1, &ending, SFD_CLOEXEC);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (signals < 0 || timer_fd < 0 || epoll_fd < 0) fail("epoll");
    serve(listen_anywhere(), signals);
    save_record();
    return 0;
}
