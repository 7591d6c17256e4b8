/* SPDX-License-Identifier: Apache-2.0 */
/* See progress.h. */
#include "src/base/progress.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"

double sh_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void sh_progress_begin(struct sh_progress *p, const char *what, const char *unit, double total, int quiet)
{
    *p = (struct sh_progress){.what = what, .unit = unit, .total = total, .quiet = quiet};
    p->terminal = isatty(STDERR_FILENO);
    p->began_s = sh_now_s();
    p->shown_s = p->terminal ? 0 : p->began_s;
}

static void time_left(char *buffer, size_t bytes, double s)
{
    int whole = (int)s;
    if (s >= 3600)
        snprintf(buffer, bytes, "%d h %02d min", whole / 3600, whole / 60 % 60);
    else if (s >= 60)
        snprintf(buffer, bytes, "%d min %02d s", whole / 60, whole % 60);
    else
        snprintf(buffer, bytes, "%d s", whole);
}

static void say_pace(const struct sh_progress *p, double done, double now, char *to, size_t bytes)
{
    double rate = done / (now - p->began_s + 1e-9), s = rate > 0 ? (p->total - done) / rate : -1;
    char left[32] = "?";
    if (s >= 0 && s < 1e8)
        time_left(left, sizeof left, s);
    snprintf(to, bytes, "  %.*f/s  %s left", rate >= 10 ? 0 : rate >= 1 ? 1 : 2, rate, left);
}

void sh_progress_show(struct sh_progress *p, double done, const char *detail)
{
    double now = sh_now_s();
    if (p->quiet || now - p->shown_s < (p->terminal ? 0.2 : 5.0))
        return;
    p->shown_s = now;
    p->shown = 1;
    char pace[80] = "";
    if (!p->uneven)
        say_pace(p, done, now, pace, sizeof pace);
    fprintf(stderr, "%s%s %3.0f %%  %.0f of %.0f %s%s  ", p->terminal ? "\r" : "", p->what,
            100 * done / (p->total > 0 ? p->total : 1), done, p->total, p->unit, pace);
    sh_put_plain(stderr, detail);
    fputs(p->terminal ? "\033[K" : "\n", stderr);
    fflush(stderr);
}

static _Thread_local void (*told)(void *to, double share);
static _Thread_local void *told_to;
static _Thread_local const struct sh_listener *listener;
static _Thread_local double share_now, listened_s;
static _Thread_local int is_stopped;

void sh_listen(const struct sh_listener *l)
{
    listener = l;
    share_now = (double)NAN;
    listened_s = 0;
    is_stopped = 0;
}

/* Work asks thousands of times a second. */
static void ask_listener(void)
{
    double now = listener && !is_stopped ? sh_now_s() : 0;
    if (now - listened_s < 0.05)
        return;
    listened_s = now;
    is_stopped = listener->progress(listener->to, share_now);
}

void sh_progress_listen(void (*fn)(void *to, double share), void *to)
{
    told = fn;
    told_to = to;
}

void sh_progress_at(struct sh_progress *p, double done, const char *detail)
{
    share_now = p->total > 0 ? done / p->total : 0;
    if (told)
        told(told_to, share_now);
    else if (listener)
        ask_listener();
    else
        sh_progress_show(p, done, detail);
}

void sh_progress_end(struct sh_progress *p)
{
    if (p->shown && p->terminal)
        fputs("\r\033[K", stderr);
}

/* ---- remarks and errors ---- */

struct line {
    char at[4096];
    size_t n;
};

static void add(struct line *l, const char *text, size_t n)
{
    if (l->n + n > sizeof l->at) {
        fwrite(l->at, 1, l->n, stderr);
        l->n = 0;
    }
    memcpy(l->at + l->n, text, n);
    l->n += n;
}

/* One write, so that lines of several processes do not mix. */
void sh_say(const char *label, const char *text)
{
    struct line l = {.n = 0};
    if (listener) {
        char *whole = xasprintf("%s%s", strncmp(label, "shears: ", 8) ? label : label + 8, text);
        listener->remark(listener->to, whole);
        free(whole);
        return;
    }
    add(&l, label, strlen(label));
    for (int n, is_shown; *text; text += n) {
        n = sh_utf8_plain(text, &is_shown);
        add(&l, is_shown ? text : "?", is_shown ? (size_t)n : 1);
    }
    add(&l, "\n", 1);
    fwrite(l.at, 1, l.n, stderr);
}

void sh_sayf(const char *label, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sh_say(label, text);
}

int sh_report_error(const struct sh_err *e)
{
    if (e->status == SH_UNREAD)
        return e->status;
    sh_say("shears: ", e->text);
    if (e->hint[0])
        sh_say("hint: ", e->hint);
    return e->status;
}

/* ---- interruption ---- */

static volatile sig_atomic_t caught;

static void handler(int number)
{
    caught = number;
}

void sh_interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART | (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);           /* a limit on file sizes is an error of the write */
}

int sh_interrupted(void)
{
    ask_listener();
    return caught ? (int)caught : is_stopped ? SIGINT : 0;
}
