// A static file server with a thread pool. One thread accepts connections into a bounded queue. A
// fixed number of workers takes them out, and each serves its connection with blocking calls until it
// ends. It follows the contract of ../README.md.
//
//   server --listen HOST:PORT [--workers N] [--requeue] FOLDER
//
// With --requeue, a worker serves one request and returns the connection to the queue, as document 3
// describes its server. A connection for which the queue has no place is closed.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// With --requeue, a worker waits TURN_MS for a connection whose next request has not arrived. Without
// this wait, the workers would spin while all connections are idle.
enum { QUEUE = 1024, HEAD_BYTES_MAX = 16384, IDLE_SECONDS = 10, SEND_SECONDS = 30, TURN_MS = 1 };

struct connection {
    int socket;
    time_t since; // When its last request ended.
    size_t held;  // Received bytes that are not yet served.
    char head[HEAD_BYTES_MAX + 1];
};

// --- The queue of accepted connections ----------------------------------------------------------

static struct {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    struct connection *connections[QUEUE];
    size_t first, count;
} queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .not_empty = PTHREAD_COND_INITIALIZER,
    .not_full = PTHREAD_COND_INITIALIZER,
};

// Appends a connection. If the queue is full, waits, or returns false.
static bool put(struct connection *connection, bool wait) {
    pthread_mutex_lock(&queue.lock);
    while (wait && queue.count == QUEUE) pthread_cond_wait(&queue.not_full, &queue.lock);
    bool fits = queue.count < QUEUE;
    if (fits) queue.connections[(queue.first + queue.count++) % QUEUE] = connection;
    pthread_cond_signal(&queue.not_empty);
    pthread_mutex_unlock(&queue.lock);
    return fits;
}

static struct connection *take(void) {
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0) pthread_cond_wait(&queue.not_empty, &queue.lock);
    struct connection *connection = queue.connections[queue.first];
    queue.first = (queue.first + 1) % QUEUE;
    queue.count--;
    pthread_cond_signal(&queue.not_full);
    pthread_mutex_unlock(&queue.lock);
    return connection;
}

// --- Requests -----------------------------------------------------------------------------------

struct request {
    char *method, *target;
    const char *range; // The field's value, or NULL.
    bool keep;         // Whether the connection serves another request.
};

// Parses a request head in place. Returns false if it is invalid.
static bool parse(char *head, struct request *request) {
    *request = (struct request){0};
    char *lines, *words;
    char *line = strtok_r(head, "\r\n", &lines);
    if (line == NULL) return false;
    request->method = strtok_r(line, " ", &words);
    request->target = strtok_r(NULL, " ", &words);
    const char *version = strtok_r(NULL, " ", &words);
    if (version == NULL || strtok_r(NULL, " ", &words) != NULL) return false;
    if (strncmp(version, "HTTP/1.", 7) != 0 || request->target[0] != '/') return false;
    request->keep = strcmp(version, "HTTP/1.0") != 0;
    while ((line = strtok_r(NULL, "\r\n", &lines)) != NULL) {
        char *value = strchr(line, ':');
        if (value == NULL || value == line) return false;
        *value++ = '\0';
        value += strspn(value, " \t");
        if (strcasecmp(line, "range") == 0) request->range = value;
        if (strcasecmp(line, "connection") == 0 && strcasecmp(value, "close") == 0) request->keep = false;
        // A body is never read, so the bytes after it must not be parsed as a request.
        if (strcasecmp(line, "content-length") == 0 && strcmp(value, "0") != 0) request->keep = false;
        if (strcasecmp(line, "transfer-encoding") == 0) request->keep = false;
    }
    request->target[strcspn(request->target, "?#")] = '\0';
    return true;
}

enum wanted { WHOLE, PART, NOTHING };

// Parses one or more digits. A number over 64 bits becomes the largest one.
static bool number(const char **text, unsigned long long *value) {
    if (**text < '0' || **text > '9') return false;
    *value = strtoull(*text, (char **)text, 10);
    return true;
}

// Parses a single byte range (RFC 9110, 14.1.2). Others are ignored, as section 14.2 allows.
static enum wanted wanted(const char *range, off_t size, off_t *first, off_t *end) {
    unsigned long long bytes = (unsigned long long)size, from, to = bytes;
    *first = 0, *end = size;
    if (range == NULL || strncasecmp(range, "bytes=", 6) != 0) return WHOLE;
    range += 6;
    if (*range == '-') {
        range++;
        if (!number(&range, &to) || *range != '\0') return WHOLE;
        if (to == 0 || bytes == 0) return NOTHING;
        *first = to < bytes ? (off_t)(bytes - to) : 0;
        return PART;
    }
    if (!number(&range, &from) || *range++ != '-') return WHOLE;
    if (*range != '\0' && (!number(&range, &to) || *range != '\0' || to < from)) return WHOLE;
    if (from >= bytes) return NOTHING;
    *first = (off_t)from;
    if (to < bytes - 1) *end = (off_t)to + 1;
    return PART;
}

// --- Responses ----------------------------------------------------------------------------------

static bool send_all(int connection, const char *bytes, size_t count, int flags) {
    while (count > 0) {
        ssize_t sent = send(connection, bytes, count, MSG_NOSIGNAL | flags);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        bytes += sent, count -= (size_t)sent;
    }
    return true;
}

// Sends a response head. `fields` are whole lines. If `more` is set, a body follows in the same packet.
static bool send_head(int connection, bool keep, const char *status, off_t length, const char *fields, bool more) {
    char date[64], head[512];
    struct tm now;
    time_t seconds = time(NULL);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&seconds, &now));
    int count = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nDate: %s\r\nContent-Length: %lld\r\n%s%s\r\n", status, date,
                         (long long)length, fields, keep ? "" : "Connection: close\r\n");
    return send_all(connection, head, (size_t)count, more ? MSG_MORE : 0);
}

static bool refuse(int connection, bool keep, const char *status, const char *fields) {
    return send_head(connection, keep, status, 0, fields, false) && keep;
}

// Opens the file of a target: a regular file below the folder, as the kernel checks. -1 if there is none.
static int open_below(int folder, const char *target, struct stat *found) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK, .resolve = RESOLVE_BENEATH};
    int file = (int)syscall(SYS_openat2, folder, target + 1, &how, sizeof how);
    if (file < 0) return -1;
    if (fstat(file, found) == 0 && S_ISREG(found->st_mode)) return file;
    close(file);
    return -1;
}

static bool send_file(int connection, const struct request *request, int file, off_t size) {
    off_t first, end;
    char fields[160];
    enum wanted part = wanted(request->range, size, &first, &end);
    if (part == NOTHING) {
        snprintf(fields, sizeof fields, "Content-Range: bytes */%lld\r\n", (long long)size);
        return refuse(connection, request->keep, "416 Range Not Satisfiable", fields);
    }
    int count = snprintf(fields, sizeof fields, "Content-Type: video/mp4\r\nAccept-Ranges: bytes\r\n");
    if (part == PART) {
        snprintf(fields + count, sizeof fields - (size_t)count, "Content-Range: bytes %lld-%lld/%lld\r\n",
                 (long long)first, (long long)end - 1, (long long)size);
    }
    bool body = strcmp(request->method, "GET") == 0 && end > first;
    const char *status = part == PART ? "206 Partial Content" : "200 OK";
    if (!send_head(connection, request->keep, status, end - first, fields, body)) return false;
    while (body && first < end) {
        ssize_t sent = sendfile(connection, file, &first, (size_t)(end - first));
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false; // The client has disconnected, or the file became shorter.
    }
    return request->keep;
}

// Serves one request. Returns whether the connection stays open.
static bool answer(int connection, int folder, char *head) {
    struct request request;
    if (!parse(head, &request)) return refuse(connection, false, "400 Bad Request", "");
    if (strcmp(request.method, "GET") != 0 && strcmp(request.method, "HEAD") != 0)
        return refuse(connection, request.keep, "405 Method Not Allowed", "Allow: GET, HEAD\r\n");
    struct stat found;
    int file = open_below(folder, request.target, &found);
    if (file < 0) return refuse(connection, request.keep, "404 Not Found", "");
    bool keep = send_file(connection, &request, file, found.st_size);
    close(file);
    return keep;
}

// --- Threads ------------------------------------------------------------------------------------

enum turn { CLOSED, OPEN, WAITING };

// Serves the next request of a connection. Without `wait`, returns WAITING if it has not arrived.
static enum turn serve_next(struct connection *from, int folder, bool wait) {
    for (;;) {
        from->head[from->held] = '\0';
        char *end = strstr(from->head, "\r\n\r\n");
        if (end != NULL) {
            *end = '\0';
            bool keep = answer(from->socket, folder, from->head);
            size_t used = (size_t)(end + 4 - from->head);
            from->held -= used;
            memmove(from->head, from->head + used, from->held);
            from->since = time(NULL);
            return keep ? OPEN : CLOSED;
        }
        if (from->held == HEAD_BYTES_MAX) {
            refuse(from->socket, false, "431 Request Header Fields Too Large", "");
            return CLOSED;
        }
        ssize_t count = recv(from->socket, from->head + from->held, HEAD_BYTES_MAX - from->held, wait ? 0 : MSG_DONTWAIT);
        if (count < 0 && !wait && (errno == EAGAIN || errno == EWOULDBLOCK)) return WAITING;
        if (count <= 0) return CLOSED; // Disconnected, or idle for too long.
        from->held += (size_t)count;
    }
}

static int folder_fd, listener_fd;
static bool requeue;

static void end(struct connection *connection) {
    close(connection->socket);
    free(connection);
}

// Serves at most one request. Returns whether the connection stays open.
static bool take_turn(struct connection *connection) {
    struct pollfd ready = {.fd = connection->socket, .events = POLLIN};
    if (connection->held == 0) poll(&ready, 1, TURN_MS);
    enum turn turn = serve_next(connection, folder_fd, false);
    bool idle = turn == WAITING && time(NULL) - connection->since > IDLE_SECONDS;
    return turn != CLOSED && !idle;
}

static void *work(void *nothing) {
    (void)nothing;
    for (;;) {
        struct connection *connection = take();
        if (requeue) {
            if (!take_turn(connection) || !put(connection, false)) end(connection);
            continue;
        }
        while (serve_next(connection, folder_fd, true) == OPEN) {}
        end(connection);
    }
    return NULL;
}

// Returns NULL without memory.
static struct connection *set_up(int socket) {
    struct timeval idle = {.tv_sec = IDLE_SECONDS}, sending = {.tv_sec = SEND_SECONDS};
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &sending, sizeof sending);
    struct connection *connection = malloc(sizeof *connection);
    if (connection == NULL) return NULL;
    connection->socket = socket, connection->held = 0, connection->since = time(NULL);
    return connection;
}

static void *accept_all(void *nothing) {
    (void)nothing;
    for (;;) {
        int socket = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC);
        struct connection *connection = socket >= 0 ? set_up(socket) : NULL;
        if (connection != NULL) put(connection, true);
        else if (socket >= 0) close(socket);
        else if (errno == EMFILE || errno == ENFILE) usleep(10000); // Waits until a descriptor is closed.
    }
    return NULL;
}

static void fail(const char *what) {
    fprintf(stderr, "server: %s: %s\n", what, strerror(errno));
    exit(1);
}

// Binds "HOST:PORT" and prints the address.
static int listen_at(char *text) {
    char *port = strrchr(text, ':');
    if (port == NULL) errno = EINVAL, fail(text);
    *port++ = '\0';
    struct addrinfo *found, hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    if (getaddrinfo(text, port, &hints, &found) != 0) errno = EINVAL, fail(text);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, found->ai_addr, found->ai_addrlen) != 0 || listen(listener, SOMAXCONN) != 0) fail(text);
    freeaddrinfo(found);
    struct sockaddr_in bound;
    socklen_t length = sizeof bound;
    getsockname(listener, (struct sockaddr *)&bound, &length);
    char host[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &bound.sin_addr, host, sizeof host);
    printf("listening on http://%s:%d\n", host, ntohs(bound.sin_port));
    fflush(stdout);
    return listener;
}

int main(int count, char **words) {
    char *listen = NULL, *folder = NULL;
    int workers = 64;
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--listen") == 0 && i + 1 < count) listen = words[++i];
        else if (strcmp(words[i], "--workers") == 0 && i + 1 < count) workers = atoi(words[++i]);
        else if (strcmp(words[i], "--requeue") == 0) requeue = true;
        else folder = words[i];
    }
    if (listen == NULL || folder == NULL || workers < 1) {
        fprintf(stderr, "usage: server --listen HOST:PORT [--workers N] [--requeue] FOLDER\n");
        return 2;
    }
    folder_fd = open(folder, O_DIRECTORY | O_PATH | O_CLOEXEC);
    if (folder_fd < 0) fail(folder);
    // The other threads block these signals. This one waits for them and exits in order.
    sigset_t ends;
    sigemptyset(&ends), sigaddset(&ends, SIGTERM), sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN); // sendfile has no MSG_NOSIGNAL.
    listener_fd = listen_at(listen);
    pthread_t thread;
    for (int i = 0; i < workers; i++)
        if (pthread_create(&thread, NULL, work, NULL) != 0) fail("thread");
    if (pthread_create(&thread, NULL, accept_all, NULL) != 0) fail("thread");
    int signal_number;
    sigwait(&ends, &signal_number);
    return 0;
}
