// Kernels that run beside the processor: a thread of the machine for each warp, which lets its 32 lanes go on by turns. A lane goes on until it
// meets the others; in every second meeting the last lane comes first, so neither the first nor the last may rely on the others by chance.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <ucontext.h>
#include <unistd.h>

// A launch has room for as many bytes of arguments as every CUDA device takes.
enum { WARP = 32, STACK = 128 * 1024, ARGUMENTS = 4096 };
struct function {
    void (*be)(unsigned, unsigned, unsigned, unsigned);
    void (*keep)(void **, void *, unsigned long);
    void (*call)(const void *);
    int beside, meets;
};
// What lanes meet for; `words.h` numbers them so.
enum meeting { SYNC, SHUFFLE, BALLOT };
static const char *const MEETINGS[] = { "__syncwarp", "__shfl_sync", "__ballot_sync" };
struct beside;
struct lane { jmp_buf here; ucontext_t first; char *stack; int begun, ended; unsigned met; enum meeting what; };
struct warp { struct beside *of; pthread_t thread; ucontext_t out; struct lane lanes[WARP]; unsigned number, met, arrived, values[2][WARP]; int now; };
struct beside {
    struct function *function;
    char arguments[ARGUMENTS];
    unsigned blocks, threads, warps;
    int left, lost, joined;
    struct warp *all;
};
static __thread struct warp *own;
// What RAVELIN_CUDA_TROUBLE says happens after so many rests of lanes and kernels that do not run beside the processor: `lost:N` the device
// is lost, `stuck:N` no lane goes on any more, `halted:N` no stream does, `unrecorded:N` no event is taken, `quits:N` every
// warp ends where it would rest, `timeless:N` the device's clock stands still.
// Rests and kernels are counted from when there is a file `armed` in the folder: a device is opened without trouble, however long that takes.
static long rests, running;
static int armed;
enum trouble { NONE, IS_LOST, IS_STUCK, IS_HALTED, IS_UNRECORDED, QUITS, IS_TIMELESS };
static enum trouble trouble(void)
{
    const char *wanted = getenv("RAVELIN_CUDA_TROUBLE"), *after = wanted ? strchr(wanted, ':') : 0;
    if (!after) return NONE;
    if (!__atomic_load_n(&armed, __ATOMIC_ACQUIRE)) {
        static pthread_mutex_t arms = PTHREAD_MUTEX_INITIALIZER;
        char file[4096];
        snprintf(file, sizeof file, "%s/armed", getenv("RAVELIN_CUDA_FOLDER"));
        if (access(file, F_OK)) return NONE;
        pthread_mutex_lock(&arms);
        // Another lane may have begun to count.
        if (!__atomic_load_n(&armed, __ATOMIC_RELAXED)) {
            __atomic_store_n(&rests, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&armed, 1, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&arms);
    }
    if (__atomic_load_n(&rests, __ATOMIC_RELAXED) < atol(after + 1)) return NONE;
    for (const char *letters = "lshuqt", *at = letters; *at; at++)
        if (*at == *wanted) return IS_LOST + (at - letters);
    return NONE;
}
static void wrong(const char *what, const char *other)
{
    fprintf(stderr, "a warp: %s%s\n", what, other);
    abort();
}

static void lane_next(void);
static void lane_begins(void)
{
    own->of->function->call(own->of->arguments);
    own->lanes[own->now].ended = 1;
    lane_next();
}
// Lets the lane whose turn it is go on; where it has ended, all have to have, in the same place.
static void lane_next(void)
{
    if (own->arrived == WARP) own->met++, own->arrived = 0;
    int place = own->arrived++, next = own->met % 2 ? WARP - 1 - place : place;
    struct lane *lane = &own->lanes[next];
    if (lane->ended) {
        for (int i = 0; i < WARP; i++)
            if (!own->lanes[i].ended || own->lanes[i].met != lane->met) wrong("lanes wait in vain for one that has ended, in ", MEETINGS[own->lanes[i].what]);
        setcontext(&own->out);
    }
    unsigned number = own->number * WARP + next, threads = own->of->threads;
    own->now = next;
    own->of->function->be(number / threads, number % threads, threads, own->of->blocks);
    if (lane->begun++) _longjmp(lane->here, 1);
    setcontext(&lane->first);
}
static unsigned meet(int what, unsigned mask, unsigned value, unsigned from)
{
    if (!own) wrong("only kernels that run beside the processor have it: ", MEETINGS[what]);
    struct lane *lane = &own->lanes[own->now];
    if (mask != 0xffffffffu) wrong("only whole warps meet, not in ", MEETINGS[what]);
    lane->what = what, lane->met++;
    // Who is here for the next time finds the other half of the values: the ones of this time may not have been read by all.
    unsigned *values = own->values[lane->met % 2], word = 0;
    values[own->now] = value;
    if (!_setjmp(lane->here)) lane_next();
    // The first that goes on sees where the others have come.
    for (int i = 0; i < WARP && own->arrived == 1; i++)
        if (own->lanes[i].ended || own->lanes[i].met != lane->met || own->lanes[i].what != what)
            wrong("lanes meet in different places, one of them in ", MEETINGS[what]);
    for (int i = 0; i < WARP && what == BALLOT; i++) word |= (values[i] & 1) << i;
    return what == SHUFFLE ? values[from % WARP] : word;
}
static void rest(void)
{
    __atomic_add_fetch(&rests, 1, __ATOMIC_RELAXED);
    while (own && trouble() == IS_STUCK) pause();
    if (own && trouble() == IS_LOST) {
        own->of->lost = 1;
        setcontext(&own->out);
    }
    if (own && trouble() == QUITS) setcontext(&own->out);
    sched_yield();
}
static int stands_still(void) { return trouble() == IS_TIMELESS; }
static const struct {
    unsigned (*meet)(int, unsigned, unsigned, unsigned);
    void (*rest)(void);
    int (*go_first)(void), (*stands_still)(void);
} around = { meet, rest, sched_yield, stands_still };

// Runs a warp to its end on this thread.
static void warp_goes(struct warp *warp)
{
    volatile int is_over = 0;
    own = warp;
    warp->met = warp->arrived = 0;
    for (int i = 0; i < WARP; i++) {
        struct lane *lane = &warp->lanes[i];
        if (!lane->stack) lane->stack = malloc(STACK);
        lane->begun = lane->ended = lane->met = 0;
        getcontext(&lane->first);
        lane->first.uc_stack.ss_sp = lane->stack, lane->first.uc_stack.ss_size = STACK;
        makecontext(&lane->first, lane_begins, 0);
    }
    getcontext(&warp->out);
    if (!is_over) {
        is_over = 1;
        lane_next();
    }
    own = 0;
}
static void *warp_runs(void *given)
{
    struct warp *warp = given;
    warp_goes(warp);
    for (int i = 0; i < WARP; i++) free(warp->lanes[i].stack);
    if (__atomic_sub_fetch(&warp->of->left, 1, __ATOMIC_ACQ_REL) == 0) __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
    return 0;
}
static void beside_begins(struct beside *kernel)
{
    kernel->warps = kernel->left = kernel->blocks * kernel->threads / WARP;
    kernel->all = calloc(kernel->warps, sizeof *kernel->all);
    __atomic_add_fetch(&running, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < kernel->warps; i++) {
        kernel->all[i].of = kernel, kernel->all[i].number = i;
        if (pthread_create(&kernel->all[i].thread, 0, warp_runs, &kernel->all[i])) wrong("the machine gives no thread", "");
    }
}
// Whether it has ended; with `waits` not before it has.
static int beside_is_over(struct beside *kernel, int waits)
{
    if (!kernel->joined && (waits || __atomic_load_n(&kernel->left, __ATOMIC_ACQUIRE) == 0)) {
        for (unsigned i = 0; i < kernel->warps; i++) pthread_join(kernel->all[i].thread, 0);
        free(kernel->all), kernel->joined = 1;
    }
    return kernel->joined;
}
