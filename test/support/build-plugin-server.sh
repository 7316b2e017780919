#!/usr/bin/env bash
# build-plugin-server.sh FOLDER: makes a PostgreSQL 17 with wal2json and pglogical there, of packages of Debian, unless it is there already.
# The packages are unpacked, not installed: the programs bring their own libraries, and run from any folder, as any user, on any Linux.
set -euo pipefail

folder=$1
mkdir -p "$(dirname "$folder")"
# Two runs may begin together. The lock goes with the process, however that ends.
exec 9> "$folder.lock"
flock 9
if [[ -d $folder ]]; then exit; fi

rm -rf "$folder".unpacked.* "$folder".made.*
unpacked=$(mktemp -d "$folder.unpacked.XXXXXX") made=$(mktemp -d "$folder.made.XXXXXX")
trap 'rm -rf "$unpacked" "$made"' EXIT
chmod 755 "$made"
# As an archive: what mmdebstrap writes into a folder may belong to a user that is not ours.
packages=postgresql-17,postgresql-17-wal2json,postgresql-17-pglogical
mmdebstrap --quiet --variant=extract --format=tar --include=$packages trixie - 9>&- |
  tar --extract --no-same-owner --directory "$unpacked" ./usr/lib ./usr/share/postgresql

# PostgreSQL finds its files by the way from its program to them, so that the way must stay.
installed=$made/lib/postgresql/17 loader=("$unpacked"/usr/lib/*/ld-linux*.so.*)
mkdir -p "$installed/bin" "$made/share/postgresql" "$made/libraries"
cp -a "$unpacked/usr/lib/postgresql/17/lib" "$installed"
rm -rf "$installed"/lib/bitcode "$installed"/lib/llvmjit*
cp -a "$unpacked/usr/share/postgresql/17" "$made/share/postgresql"
for program in postgres initdb pg_ctl; do
  cp "$unpacked/usr/lib/postgresql/17/bin/$program" "$installed/bin/$program.elf"
  cat > "$installed/bin/$program" << 'END'
#!/bin/sh
libraries=${0%/*}/../../../../libraries
exec "$libraries/loader" --library-path "$libraries" --argv0 "$0" "$0.elf" "$@"
END
  chmod 755 "$installed/bin/$program"
done
cp -L "${loader[0]}" "$made/libraries/loader"
for file in "$installed"/bin/*.elf "$installed"/lib/*.so; do
  "${loader[0]}" --library-path "$(dirname "${loader[0]}")" --list "$file"
done | awk '$2 == "=>" && $3 ~ "^/" { print $3 }' | sort -u | xargs cp -L -t "$made/libraries"

mv "$made" "$folder"
