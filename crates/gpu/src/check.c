// Mixes a packet's bytes and its column, inverts the bytes, and looks the result up.
{
    if (i < packets) {
        unsigned int sum = columns[i], at;
        for (at = 0; at < 16; at++) {
            sum = sum * 31u + bytes[16 * i + at];
            bytes[16 * i + at] ^= 0xff;
        }
        verdicts[i] = table[sum % 64u];
        records[i] = sum;
    }
}
