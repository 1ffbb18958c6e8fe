#!/bin/bash
# Makes the tables beside it from a live MariaDB 10.11:
#   generate.sh "mariadb -uroot -S SOCKET"
# general_ci.bin, upper.bin, lower.bin: weight, upper and lower case of U+0000..U+FFFF.
#   256 bytes: for each high byte the number of its page, 0 if all its code points map to
#   themselves; then the pages, 256 little-endian u16 each (page 1 first).
# unicode_ci.bin: weights of utf8mb4_unicode_ci: 256 bytes of page numbers (0: implicit weights);
#   pages of 256 little-endian u16 offsets (in u16 units from the pool's start; the pool
#   follows the pages); in the pool a count and so many weights.
# latin1.bin: 256 weights of latin1_swedish_ci, then 256 little-endian u16 code points.
set -eu
cd "$(dirname "$0")"
client=${1:?client command}
hex4="convert(convert(unhex(lpad(hex(seq),4,'0')) using ucs2) using utf8mb4)"
hex2="convert(unhex(lpad(hex(seq),2,'0')) using latin1)"
$client -N --default-character-set=utf8mb4 mysql -e "
  select hex(weight_string(c collate utf8mb4_general_ci)), hex(convert(upper(c) using ucs2)),
         hex(convert(lower(c) using ucs2)), hex(weight_string(c collate utf8mb4_unicode_ci))
  from (select $hex4 collate utf8mb4_general_ci c from seq_0_to_65535) t;
  select hex(weight_string($hex2 collate latin1_swedish_ci)),
         hex(convert($hex2 using ucs2)) from seq_0_to_255" | python3 -c '
import struct, sys
rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
bmp, latin1 = rows[:65536], rows[65536:]
def table(name, column):
    index, pages = bytearray(256), []
    for high in range(256):
        page = []
        for low in range(256):
            cell = bmp[high * 256 + low][column]
            surrogate = 0xD8 <= high <= 0xDF
            page.append(high * 256 + low if surrogate or not cell else int(cell[:4], 16))
        if page != list(range(high * 256, high * 256 + 256)):
            pages.append(page)
            index[high] = len(pages)
    with open(name, "wb") as f:
        f.write(index)
        for page in pages:
            f.write(struct.pack("<256H", *page))
table("general_ci.bin", 0)
table("upper.bin", 1)
table("lower.bin", 2)
def implicit(c):
    base = 0xFB40 if 0x4E00 <= c <= 0x9FA5 else 0xFB80 if 0x3400 <= c <= 0x4DB5 else 0xFBC0
    return "%04X%04X" % (base + (c >> 15), (c & 0x7FFF) | 0x8000)
index, pages, pool, seen = bytearray(256), [], [0], {"": 0}
for high in range(256):
    cells = [bmp[high * 256 + low][3] for low in range(256)]
    if 0xD8 <= high <= 0xDF or all(cells[l] == implicit(high * 256 + l) for l in range(256)):
        continue
    page = []
    for cell in cells:
        if cell not in seen:
            seen[cell] = len(pool)
            weights = [int(cell[i:i + 4], 16) for i in range(0, len(cell), 4)]
            pool += [len(weights)] + weights
        page.append(seen[cell])
    pages.append(page)
    index[high] = len(pages)
assert len(pool) < 65536
with open("unicode_ci.bin", "wb") as f:
    f.write(index)
    for page in pages:
        f.write(struct.pack("<256H", *page))
    f.write(struct.pack("<%dH" % len(pool), *pool))
with open("latin1.bin", "wb") as f:
    f.write(bytes(int(r[0], 16) for r in latin1))
    f.write(struct.pack("<256H", *(int(r[1], 16) for r in latin1)))
print("pool", len(pool), "pages", len(pages))
'
