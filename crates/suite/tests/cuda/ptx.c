// PTX inside of a kernel's text, written as what a C++ compiler knows of the same: `asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(word) : …)`
// is a load that acquires. What is not known stops the build of the kernel.
#include <ctype.h>

enum { OPERANDS = 8, LONG = 512 };
struct statement { char text[4 * LONG], operands[OPERANDS][LONG]; int count; };

static const char *blank(const char *at) { while (isspace((unsigned char)*at)) at++; return at; }
// Reads a text between quotes, behind what `to` holds.
static const char *quoted(const char *at, char *to, size_t room)
{
    size_t length = strlen(to);
    for (at++; *at && *at != '"'; at++) {
        int escaped = *at == '\\' && at[1];
        if (escaped) at++;
        if (length + 1 < room) to[length++] = escaped && (*at == 'n' || *at == 't') ? ' ' : *at;
    }
    to[length] = 0;
    return *at ? at + 1 : at;
}
// Reads an asm statement from behind its opening parenthesis on; gives the place behind it.
static const char *read_statement(const char *at, struct statement *made)
{
    made->text[0] = 0, made->count = 0;
    for (at = blank(at); *at == '"'; at = blank(at)) at = quoted(at, made->text, sizeof made->text);
    while (*at && *at != ')') {
        if (*at == '"') {
            char constraint[32] = "";
            at = blank(quoted(at, constraint, sizeof constraint));
            if (*at != '(' || made->count == OPERANDS) continue;
            char *to = made->operands[made->count++];
            size_t length = 0;
            int depth = 0;
            do {
                depth += (*at == '(') - (*at == ')');
                if (length + 1 < LONG) to[length++] = *at;
            } while (*at++ && depth);
            to[length] = 0;
        } else at++;
    }
    return *at ? at + 1 : at;
}
// An operand of an instruction, `[…]` or not, as an expression.
static void operand(const char *named, const struct statement *of, char *to)
{
    named += *named == '[' || *named == '{';
    if (named[0] == '%' && isdigit((unsigned char)named[1]) && named[1] - '0' < of->count) snprintf(to, LONG, "%s", of->operands[named[1] - '0']);
    else snprintf(to, LONG, "(%.*s)", (int)strcspn(named, "]"), named);
}
static int has(const char *name, const char *part)
{
    size_t length = strlen(part);
    for (const char *at = name; (at = strstr(at, part)); at++)
        if ((at == name || at[-1] == '.') && (at[length] == 0 || at[length] == '.')) return 1;
    return 0;
}
static const char *order(const char *name)
{
    return has(name, "acq_rel") ? "__ATOMIC_ACQ_REL" : has(name, "acquire") ? "__ATOMIC_ACQUIRE" : has(name, "release") ? "__ATOMIC_RELEASE"
           : has(name, "sc") ? "__ATOMIC_SEQ_CST" : "__ATOMIC_RELAXED";
}
static void instruction(char *text, const struct statement *of, FILE *out)
{
    char name[LONG] = "", parts[4][LONG] = {{0}}, x[4][LONG] = {{0}};
    int count = 0;
    size_t length = strcspn(text, " \t\n");
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    for (char *part = strtok(text + length, ","); part && count < 4; part = strtok(0, ",")) {
        snprintf(parts[count], LONG, "%s", blank(part));
        for (size_t end = strlen(parts[count]); end && isspace((unsigned char)parts[count][end - 1]);) parts[count][--end] = 0;
        operand(parts[count], of, x[count]), count++;
    }
    // The words of a vector are read in an order that nobody promises: here others go between the first and the second.
    if (has(name, "ld") && has(name, "v2") && count == 3)
        return (void)fprintf(out, "{ unsigned *pair_ = (unsigned *)%s; %s = __atomic_load_n(pair_, %s); others_go_first(); %s = __atomic_load_n(pair_ + 1, %s); } ",
                             x[2], x[0], order(name), x[1], order(name));
    const char *type = strstr(name, "64") ? "unsigned long" : "unsigned";
    if (has(name, "ld") && count == 2) fprintf(out, "%s = __atomic_load_n((%s *)%s, %s); ", x[0], type, x[1], order(name));
    else if (has(name, "st") && count == 2) fprintf(out, "__atomic_store_n((%s *)%s, (%s)%s, %s); ", type, x[0], type, x[1], order(name));
    else if (has(name, "atom") && has(name, "add") && count == 3)
        fprintf(out, "%s = __atomic_fetch_add((%s *)%s, (%s)%s, %s); ", x[0], type, x[1], type, x[2], order(name));
    else if (has(name, "atom") && has(name, "cas") && count == 4)
        // Others go first, so that who relies on what it has read before is wrong often.
        fprintf(out, "{ others_go_first(); %s old_ = %s; __atomic_compare_exchange_n((%s *)%s, &old_, (%s)%s, false, %s, __ATOMIC_RELAXED); %s = old_; } ",
                type, x[2], type, x[1], type, x[3], order(name), x[0]);
    else if (has(name, "fence") || has(name, "membar")) fprintf(out, "__atomic_thread_fence(__ATOMIC_SEQ_CST); ");
    else if (has(name, "nanosleep") && count == 1) fprintf(out, "__nanosleep(%s); ", x[0]);
    else if (has(name, "mov") && count == 2 && strstr(parts[1], "%globaltimer"))
        fprintf(out, "%s = clock_of_the_machine(); ", x[0]);
    else fprintf(out, "\n#error the imitation does not know the instruction `%s` with %d operands\n", name, count);
}
// Writes a kernel's text with its asm statements in C++.
static void put_in_words(const char *text, FILE *out)
{
    while (*text) {
        const char *at = strstr(text, "asm");
        while (at && ((at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_')) || isalnum((unsigned char)at[3]))) at = strstr(at + 1, "asm");
        const char *open = at ? blank(at + 3) : 0;
        if (open && strncmp(open, "volatile", 8) == 0) open = blank(open + 8);
        if (!open || *open != '(') {
            size_t length = at ? (size_t)(at + 3 - text) : strlen(text);
            fwrite(text, 1, length, out);
            text += length;
            continue;
        }
        struct statement made;
        fwrite(text, 1, at - text, out);
        text = read_statement(open + 1, &made);
        fputs("do { ", out);
        for (char *rest = made.text, *end; *(rest = (char *)blank(rest)); rest = end) {
            end = rest + strcspn(rest, ";");
            if (*end) *end++ = 0;
            instruction(rest, &made, out);
        }
        fputs("} while (0)", out);
    }
}
