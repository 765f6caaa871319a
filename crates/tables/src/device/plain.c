// Reads an image and what is asked, and asks `answer`, which the caller writes, for all answers.
#include <stdio.h>
#include <stdlib.h>

static void tell(u32 word) { fwrite(&word, 4, 1, stdout); }

static u8 *input(u64 *bytes)
{
    if (fread(bytes, 8, 1, stdin) != 1) exit(3);
    u8 *room = malloc(*bytes ? *bytes : 1);
    if (!room || (*bytes && fread(room, *bytes, 1, stdin) != 1)) exit(4);
    return room;
}

static void answer(const u32 *image, const u8 *asked, u64 bytes);

int main(void)
{
    u64 words, bytes;
    u8 *image = input(&words), *asked = input(&bytes);
    answer((const u32 *)image, asked, bytes);
    free(image);
    free(asked);
    return 0;
}
