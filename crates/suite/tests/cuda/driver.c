// An imitation of CUDA's driver and compiler for one device that is the processor: what is handed over is done when somebody waits for it, and
// addresses of the device are other numbers than those of the processor.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long place;
enum { DONE = 0, INVALID = 1, NOT_READY = 600, LOST = 700 };

static place hidden(const void *memory) { return (place)memory ^ 0x5a5a000000000000ull; }
static void *shown(place at) { return (void *)(at ^ 0x5a5a000000000000ull); }

static struct step {
    void *to;
    const void *from;
    size_t bytes;
    unsigned blocks, threads;
    void *arguments[32];
    unsigned packets;
} steps[64];
static int waiting, launches;

static void (*kernel)(void *, void *, void *, void *, unsigned, void *, void *, void *, void *, void *, void *, void *, void *);
static void (*be)(unsigned, unsigned, unsigned);
static int tables;

static void run(struct step *step)
{
    void **a = step->arguments;
    if (step->blocks == 0) {
        memcpy(step->to, step->from, step->bytes);
        return;
    }
    for (unsigned block = 0; block < step->blocks; block++)
        for (unsigned thread = 0; thread < step->threads; thread++) {
            be(block, thread, step->threads);
            kernel(a[0], a[1], a[2], a[3], step->packets, a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
        }
}
static int all(void)
{
    for (int i = 0; i < waiting; i++) run(&steps[i]);
    waiting = 0;
    return DONE;
}
static int later(void *to, const void *from, size_t bytes)
{
    if (waiting == 64) return INVALID;
    memset(&steps[waiting], 0, sizeof steps[waiting]);
    steps[waiting].to = to, steps[waiting].from = from, steps[waiting].bytes = bytes;
    waiting++;
    return DONE;
}

int cuInit(unsigned flags) { return DONE; }
int cuDriverGetVersion(int *version) { *version = 13000; return DONE; }
int cuDeviceGetCount(int *count) { *count = 1; return DONE; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal == 0 ? DONE : INVALID; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1ul << 30; return DONE; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 75 ? 9 : 0; return DONE; }
int cuDeviceGetName(char *name, int room, int device) { snprintf(name, room, "Imitation"); return DONE; }
int cuGetErrorName(int error, const char **name) { *name = error == LOST ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OF_SOME_KIND"; return DONE; }
int cuGetErrorString(int error, const char **text) { *text = "on purpose"; return DONE; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &launches; return DONE; }
int cuDevicePrimaryCtxRelease_v2(int device) { return DONE; }
int cuCtxSetCurrent(void *context) { return context == &launches ? DONE : INVALID; }
int cuStreamCreate(void **stream, unsigned flags) { *stream = malloc(1); return DONE; }
int cuStreamSynchronize(void *stream) { return all(); }
int cuStreamDestroy_v2(void *stream) { free(stream); return DONE; }
int cuEventCreate(void **event, unsigned flags) { *event = malloc(1); return DONE; }
int cuEventRecord(void *event, void *stream) { return DONE; }
int cuEventQuery(void *event)
{
    if (waiting == 0) return DONE;
    all();
    return NOT_READY;
}
int cuEventSynchronize(void *event) { return all(); }
int cuEventDestroy_v2(void *event) { free(event); return DONE; }
int cuMemAlloc_v2(place *at, size_t bytes) { *at = hidden(malloc(bytes)); return DONE; }
int cuMemFree_v2(place at) { free(shown(at)); return DONE; }
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) { *memory = malloc(bytes); return DONE; }
int cuMemFreeHost(void *memory) { free(memory); return DONE; }
int cuMemHostGetDevicePointer_v2(place *at, void *memory, unsigned flags) { *at = hidden(memory); return DONE; }
int cuMemcpyHtoD_v2(place to, const void *from, size_t bytes) { memcpy(shown(to), from, bytes); return DONE; }
int cuMemcpyHtoDAsync_v2(place to, const void *from, size_t bytes, void *stream) { return later(shown(to), from, bytes); }
int cuMemcpyDtoHAsync_v2(void *to, place from, size_t bytes, void *stream) { return later(to, shown(from), bytes); }

// The image of a kernel is its text: it is built when it is loaded.
int cuModuleLoadData(void **module, const char *text)
{
    static int number;
    char source[512], built[512], command[2048];
    const char *folder = getenv("RAVELIN_CUDA_FOLDER"), *at = strstr(text, "PARAMETERS");
    const char *end = at ? strchr(at, '\n') : 0;
    tables = 0;
    for (; at && (at = strstr(at, "const u32 *t")) && at < end; at++) tables++;
    if (!end) tables = 1;
    snprintf(source, sizeof source, "%s/kernel-%d.cc", folder, number);
    snprintf(built, sizeof built, "%s/kernel-%d.so", folder, number++);
    FILE *file = fopen(source, "w");
    if (!file) return INVALID;
    fputs("#define __global__\n#define __device__\n#define __forceinline__ inline\n"
          "static struct { unsigned x; } blockIdx, threadIdx, blockDim;\n"
          "extern \"C\" void be(unsigned b, unsigned t, unsigned d) { blockIdx.x = b, threadIdx.x = t, blockDim.x = d; }\n"
          "static inline unsigned long __umul64hi(unsigned long a, unsigned long b) { return (unsigned __int128)a * b >> 64; }\n",
          file);
    fputs(text, file);
    fclose(file);
    snprintf(command, sizeof command, "c++ -w -O1 -fPIC -shared -o %s %s", built, source);
    *module = system(command) == 0 ? dlopen(built, RTLD_NOW | RTLD_LOCAL) : 0;
    return *module ? DONE : INVALID;
}
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    kernel = *function = dlsym(module, name);
    be = dlsym(module, "be");
    return kernel && be ? DONE : INVALID;
}
int cuModuleUnload(void *module) { return dlclose(module) == 0 ? DONE : INVALID; }
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned b, unsigned c, unsigned shared, void *stream,
                   void **arguments, void **extra)
{
    const char *limit = getenv("RAVELIN_CUDA_LAUNCHES");
    if (limit && ++launches > atoi(limit)) return LOST;
    if (function != (void *)kernel || y != 1 || z != 1 || b != 1 || c != 1 || tables > 8) return INVALID;
    if (later(0, 0, 0) != DONE) return INVALID;
    struct step *step = &steps[waiting - 1];
    step->blocks = x, step->threads = threads, step->packets = *(unsigned *)arguments[4];
    for (int i = 0; i < 4; i++) step->arguments[i] = shown(*(place *)arguments[i]);
    for (int i = 0; i < tables; i++) step->arguments[4 + i] = shown(*(place *)arguments[5 + i]);
    return DONE;
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
