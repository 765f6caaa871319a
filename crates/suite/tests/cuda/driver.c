// An imitation of CUDA's driver and compiler for one device that is the processor: what is put on a stream is done when somebody asks for an
// event or waits, stream by stream and no further than asked for; addresses of the device are other numbers than those of the processor, and
// memory that the driver does not know is no device's. What is left when the device is closed ends the process.
//
// `serve_packets` runs beside the processor (`warps.c`), from the moment on at which what is before it on its stream is done. What a
// real driver may do only behind it waits for it, and ends the process where that takes a second.
//
// It stands beside what a kernel's text is built with, and is to be found there when it runs.
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx.c"
#include "warps.c"

typedef unsigned long long place;
enum { DONE = 0, INVALID = 1, NOT_READY = 600, LOST = 700, TOO_LARGE = 720, CAPTURE_UNSUPPORTED = 900 };
enum { PAGE = 4096, STEPS = 512, KNOWN = 16384, PROCESSORS = 2, BLOCKS_AT_ONCE = 4 };

static place hidden(const void *memory) { return (place)memory ^ 0x5a5a000000000000ull; }
static void *shown(place at) { return (void *)(at ^ 0x5a5a000000000000ull); }

struct step {
    void *to;
    const void *from;
    size_t bytes;
    unsigned char value;
    struct function *function;
    unsigned blocks, threads;
    char arguments[ARGUMENTS];
    struct beside *beside;
};
// Steps since the beginning, of which those from `done` on wait; while it records, `recorded` takes them.
struct graph { struct step steps[STEPS]; int count; };
struct stream { struct step steps[STEPS]; unsigned long put, done; struct graph *recorded; };
struct event { struct stream *stream; unsigned long behind; int timed; };

// What has been made and not been given back.
static int contexts, objects, launches, lost;
// Asks for something that waits until nothing runs any more. A kernel that has been left alone ends soon; whoever waits for one that does not
// has forgotten to let it end.
static void alone(const char *what)
{
    if (trouble() == IS_HALTED) wrong("a batch that does not end may use all that there is, and the driver is asked for ", what);
    for (int milliseconds = 0; __atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0 && !lost; milliseconds++) {
        if (milliseconds == 1000) wrong("a kernel runs on, and is waited for by ", what);
        usleep(1000);
    }
}

// Memory of the processor that the driver keeps in its place.
static struct { char *memory; size_t bytes; int mapped, ours; } known[KNOWN];
static int keep(void *memory, size_t bytes, int mapped, int ours)
{
    for (int i = 0; i < KNOWN; i++)
        if (!known[i].memory) {
            known[i].memory = memory, known[i].bytes = bytes, known[i].mapped = mapped, known[i].ours = ours;
            return DONE;
        }
    return INVALID;
}
static int kept(const void *memory, size_t bytes)
{
    for (int i = 0; i < KNOWN; i++)
        if (known[i].memory && (char *)memory >= known[i].memory && (char *)memory + bytes <= known[i].memory + known[i].bytes) return i;
    return -1;
}
static int give_up(void *memory, int ours)
{
    int i = kept(memory, 1);
    if (i < 0 || known[i].memory != memory || known[i].ours != ours) return INVALID;
    known[i].memory = 0;
    return DONE;
}

// Does a step; of one that runs beside the processor, begins it, or says whether it is over.
static int run(struct step *step, int waits)
{
    if (trouble() == IS_HALTED) {
        if (waits) wrong("a batch does not end, and is waited for without a bound", "");
        return 0;
    }
    if (!step->function) {
        if (step->from) memcpy(step->to, step->from, step->bytes);
        else memset(step->to, step->value, step->bytes);
        return 1;
    }
    if (step->function->beside) {
        if (lost) return 1;
        if (!step->beside) {
            step->beside = calloc(1, sizeof *step->beside);
            step->beside->function = step->function, step->beside->blocks = step->blocks, step->beside->threads = step->threads;
            memcpy(step->beside->arguments, step->arguments, ARGUMENTS);
            beside_begins(step->beside);
        }
        if (!beside_is_over(step->beside, waits)) return 0;
        if (step->beside->lost) lost = LOST;
        free(step->beside);
        return 1;
    }
    if (step->function->meets) {
        static struct warp warp;
        struct beside all = { .function = step->function, .blocks = step->blocks, .threads = step->threads };
        memcpy(all.arguments, step->arguments, ARGUMENTS);
        for (warp.number = 0, warp.of = &all; warp.number < step->blocks * step->threads / WARP; warp.number++) warp_goes(&warp);
        return 1;
    }
    for (unsigned block = 0; block < step->blocks; block++)
        for (unsigned thread = 0; thread < step->threads; thread++) {
            step->function->be(block, thread, step->threads, step->blocks);
            step->function->call(step->arguments);
        }
    return 1;
}
// Whether it has come so far.
static int run_until(struct stream *stream, unsigned long end, int waits)
{
    while (stream->done < end && run(&stream->steps[stream->done % STEPS], waits)) stream->done++;
    return stream->done >= end;
}
static int later(struct stream *stream, struct step step)
{
    if (stream->recorded) {
        if (stream->recorded->count == STEPS) return INVALID;
        stream->recorded->steps[stream->recorded->count++] = step;
        return DONE;
    }
    if (stream->put - stream->done == STEPS) return INVALID;
    stream->steps[stream->put++ % STEPS] = step;
    return DONE;
}
static int copy(struct stream *stream, void *to, const void *from, size_t bytes, const void *here)
{
    struct step step = { .to = to, .from = from, .bytes = bytes };
    if (stream->recorded && kept(here, bytes) < 0) return CAPTURE_UNSUPPORTED;
    return later(stream, step);
}

int cuInit(unsigned flags) { return DONE; }
int cuDriverGetVersion(int *version) { *version = 13000; return DONE; }
int cuDeviceGetCount(int *count) { *count = 1; return DONE; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal == 0 ? DONE : INVALID; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1ul << 30; return DONE; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 75 ? 9 : which == 16 ? PROCESSORS : which == 19 || which == 95 || which == 99; return DONE; }
int cuDeviceGetName(char *name, int room, int device) { snprintf(name, room, "Imitation"); return DONE; }
int cuGetErrorName(int error, const char **name) { *name = error == LOST ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OF_SOME_KIND"; return DONE; }
int cuGetErrorString(int error, const char **text) { *text = "on purpose"; return DONE; }
int cuDevicePrimaryCtxRetain(void **context, int device) { contexts++; *context = &launches; return DONE; }
int cuDevicePrimaryCtxRelease_v2(int device)
{
    alone("cuDevicePrimaryCtxRelease");
    int left = objects;
    for (int i = 0; i < KNOWN; i++) left += known[i].memory != 0;
    if (--contexts == 0 && left && !lost) {
        fprintf(stderr, "%d things of the driver were not given back\n", left);
        abort();
    }
    return DONE;
}
int cuCtxSetCurrent(void *context) { return context == &launches ? DONE : INVALID; }

int cuStreamCreate(void **stream, unsigned flags)
{
    alone("cuStreamCreate");
    *stream = calloc(1, sizeof(struct stream)), objects++;
    return flags == 1 ? DONE : INVALID;
}
int cuStreamDestroy_v2(struct stream *stream) { alone("cuStreamDestroy"), free(stream), objects--; return DONE; }

int cuEventCreate(struct event **event, unsigned flags)
{
    *event = calloc(1, sizeof(struct event)), objects++;
    (*event)->timed = flags == 0;
    return flags == 0 || flags == 2 ? DONE : INVALID;
}
int cuEventRecord(struct event *event, struct stream *stream)
{
    if (stream->recorded) return CAPTURE_UNSUPPORTED;
    if (trouble() == IS_UNRECORDED) return INVALID;
    event->stream = stream, event->behind = stream->put;
    return DONE;
}
int cuEventQuery(struct event *event)
{
    if (lost) return LOST;
    if (!event->stream || event->stream->done >= event->behind) return DONE;
    run_until(event->stream, event->behind, 0);
    return lost ? lost : NOT_READY;
}
int cuEventElapsedTime_v2(float *milliseconds, struct event *from, struct event *to)
{
    if (!from->timed || !to->timed || !from->stream || from->stream != to->stream || to->stream->done < to->behind) return INVALID;
    *milliseconds = to->behind - from->behind;
    return DONE;
}
int cuEventDestroy_v2(struct event *event) { free(event), objects--; return DONE; }

int cuStreamBeginCapture_v2(struct stream *stream, int mode)
{
    if (stream->recorded) return INVALID;
    stream->recorded = calloc(1, sizeof(struct graph)), objects++;
    return DONE;
}
int cuStreamEndCapture(struct stream *stream, struct graph **graph)
{
    *graph = stream->recorded, stream->recorded = 0;
    return *graph ? DONE : INVALID;
}
int cuGraphInstantiateWithFlags(struct graph **made, struct graph *graph, unsigned long long flags)
{
    *made = malloc(sizeof *graph), objects++;
    **made = *graph;
    return DONE;
}
int cuGraphDestroy(struct graph *graph) { free(graph), objects--; return DONE; }
int cuGraphExecDestroy(struct graph *graph) { free(graph), objects--; return DONE; }
static int fails(void)
{
    const char *limit = getenv("RAVELIN_CUDA_LAUNCHES");
    return limit && ++launches > atoi(limit) ? lost = LOST : DONE;
}
int cuGraphLaunch(struct graph *graph, struct stream *stream)
{
    if (fails()) return LOST;
    for (int i = 0; i < graph->count; i++)
        if (later(stream, graph->steps[i]) != DONE) return INVALID;
    return DONE;
}

int cuMemAlloc_v2(place *at, size_t bytes) { alone("cuMemAlloc"), *at = hidden(malloc(bytes)), objects++; return DONE; }
int cuMemFree_v2(place at) { alone("cuMemFree"), free(shown(at)), objects--; return DONE; }
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    alone("cuMemHostAlloc");
    *memory = malloc(bytes);
    return keep(*memory, bytes, flags & 2, 0);
}
int cuMemFreeHost(void *memory)
{
    alone("cuMemFreeHost");
    if (give_up(memory, 0) != DONE) return INVALID;
    free(memory);
    return DONE;
}
int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    alone("cuMemHostRegister");
    if ((place)memory % PAGE || bytes % PAGE || !bytes || kept(memory, 1) >= 0) return INVALID;
    return keep(memory, bytes, flags & 2, 1);
}
int cuMemHostUnregister(void *memory) { alone("cuMemHostUnregister"); return give_up(memory, 1); }
int cuMemHostGetDevicePointer_v2(place *at, void *memory, unsigned flags)
{
    int i = kept(memory, 1);
    *at = hidden(memory);
    return i >= 0 && known[i].mapped ? DONE : INVALID;
}
int cuMemsetD8Async(place at, unsigned char value, size_t bytes, struct stream *stream)
{
    struct step step = { .to = shown(at), .bytes = bytes, .value = value };
    return later(stream, step);
}
int cuMemcpyHtoDAsync_v2(place to, const void *from, size_t bytes, struct stream *stream) { return copy(stream, shown(to), from, bytes, from); }
int cuMemcpyDtoHAsync_v2(void *to, place from, size_t bytes, struct stream *stream) { return copy(stream, to, shown(from), bytes, to); }

// The image of a kernel is its text: it is built when it is loaded, with an entry for each kernel in it.
static const char *const KERNELS[] = { "run_packets", "serve_packets", "answer" };
enum { ENTRIES = sizeof KERNELS / sizeof *KERNELS };
struct module { void *library; struct function functions[ENTRIES]; };
static int has_kernel(const char *text, int which)
{
    char head[64];
    snprintf(head, sizeof head, "__global__ void %s(", KERNELS[which]);
    return strstr(text, head) != 0;
}
static int write_to(const char *path, const char *end, const char *text, int in_words)
{
    char name[600];
    snprintf(name, sizeof name, "%s%s", path, end);
    FILE *file = fopen(name, "w");
    if (!file) return INVALID;
    if (in_words) put_in_words(text, file);
    else fputs(text, file);
    for (int i = 0; in_words && i < ENTRIES; i++)
        if (has_kernel(text, i)) fprintf(file, "\nENTRY(%s)\n", KERNELS[i]);
    fclose(file);
    return DONE;
}
// What a device's compiler would make of a text, without its macros, is written in words that the processor's knows, and built.
static int build(const char *text, const char *path)
{
    char command[4096];
    if (write_to(path, ".cu", text, 0) != DONE) return INVALID;
    snprintf(command, sizeof command, "c++ -x c++ -E -P -D__CUDA_ARCH__=900 %s.cu -o %s.i", path, path);
    if (system(command) != 0) return INVALID;
    snprintf(command, sizeof command, "%s.i", path);
    FILE *file = fopen(command, "r");
    if (!file) return INVALID;
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    char *plain = calloc(1, length + 1);
    rewind(file);
    int put = fread(plain, 1, length, file) == length ? write_to(path, ".cc", plain, 1) : INVALID;
    fclose(file);
    free(plain);
    snprintf(command, sizeof command, "c++ -w -O1 -fPIC -shared -include %.*swords.h -o %s.so %s.cc",
             (int)(strlen(__FILE__) - strlen("driver.c")), __FILE__, path, path);
    return put == DONE && system(command) == 0 ? DONE : INVALID;
}
static void *part(void *library, const char *what, const char *of)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", what, of);
    return dlsym(library, name);
}
int cuModuleLoadData(struct module **made, const char *text)
{
    unsigned long long number = 14695981039346656037ull;
    for (const char *c = text; *c; c++) number = (number ^ (unsigned char)*c) * 1099511628211ull;
    char path[512], built[520];
    const char *folder = getenv("RAVELIN_CUDA_FOLDER");
    alone("cuModuleLoadData");
    // What has gone wrong stays so for as long as the process.
    if (lost) return LOST;
    __atomic_store_n(&armed, 0, __ATOMIC_RELEASE);
    snprintf(path, sizeof path, "%s/kernel-%llx", folder, number);
    snprintf(built, sizeof built, "%s.so", path);
    // A text that has been built before is not built again.
    void *library = dlopen(built, RTLD_NOW | RTLD_LOCAL);
    if (!library) library = build(text, path) == DONE ? dlopen(built, RTLD_NOW | RTLD_LOCAL) : 0;
    if (!library) return INVALID;
    *made = calloc(1, sizeof **made), (*made)->library = library;
    // Where lanes meet, they go on by turns; otherwise one behind the other, which is quicker.
    for (int i = 0; i < ENTRIES; i++) (*made)->functions[i].meets = strstr(text, "_sync(") || strstr(text, "__syncwarp(");
    ((void (*)(const void *))dlsym(library, "live"))(&around);
    return DONE;
}
int cuModuleGetFunction(struct function **function, struct module *module, const char *name)
{
    for (int i = 0; i < ENTRIES; i++) {
        if (strcmp(name, KERNELS[i]) != 0) continue;
        struct function *own = *function = &module->functions[i];
        own->be = dlsym(module->library, "be"), own->beside = i > 0;
        own->keep = part(module->library, "keep_", name), own->call = part(module->library, "call_", name);
        return own->keep && own->call ? DONE : INVALID;
    }
    return INVALID;
}
int cuModuleUnload(struct module *module)
{
    alone("cuModuleUnload");
    int left = dlclose(module->library);
    free(module);
    return left == 0 ? DONE : INVALID;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct function *function, int threads, size_t shared)
{
    *blocks = threads <= 128 && shared == 0 ? BLOCKS_AT_ONCE : 0;
    return DONE;
}
int cuLaunchKernel(struct function *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned b, unsigned c, unsigned shared,
                   struct stream *stream, void **arguments, void **extra)
{
    struct step step = { .function = function, .blocks = x, .threads = threads };
    if (!stream->recorded && fails()) return LOST;
    if (y != 1 || z != 1 || b != 1 || c != 1 || threads % WARP) return INVALID;
    function->keep(arguments, step.arguments, ARGUMENTS);
    int put = later(stream, step);
    if (!function->beside) __atomic_add_fetch(&rests, 1, __ATOMIC_RELAXED);
    // Nobody has to ask for it.
    if (put == DONE && function->beside) run_until(stream, stream->put, 0);
    return put;
}
int cuLaunchCooperativeKernel(struct function *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned b, unsigned c, unsigned shared,
                              struct stream *stream, void **arguments)
{
    if (x * y * z > PROCESSORS * BLOCKS_AT_ONCE) return TOO_LARGE;
    return cuLaunchKernel(function, x, y, z, threads, b, c, shared, stream, arguments, 0);
}

int nvrtcVersion(int *major, int *minor) { *major = 13, *minor = 0; return DONE; }
int nvrtcGetNumSupportedArchs(int *count) { *count = 2; return DONE; }
int nvrtcGetSupportedArchs(int *known) { known[0] = 75, known[1] = 90; return DONE; }
int nvrtcCreateProgram(char **program, const char *text, const char *name, int headers, void *a, void *b) { *program = strdup(text); return DONE; }
int nvrtcCompileProgram(char *program, int count, const char **options)
{
    return count == 1 && strcmp(options[0], "--gpu-architecture=sm_90") == 0 ? DONE : INVALID;
}
int nvrtcGetProgramLogSize(char *program, size_t *bytes) { *bytes = 1; return DONE; }
int nvrtcGetProgramLog(char *program, char *log) { *log = 0; return DONE; }
int nvrtcGetCUBINSize(char *program, size_t *bytes) { *bytes = strlen(program) + 1; return DONE; }
int nvrtcGetCUBIN(char *program, char *image) { strcpy(image, program); return DONE; }
int nvrtcDestroyProgram(char **program) { free(*program); return DONE; }
