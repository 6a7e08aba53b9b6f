#!/bin/sh
# Makes this machine a device with an installed release, in a mount namespace that ends with the script, and runs halo doctor with the arguments:
#   unshare -m sh device.sh HALO RELEASE KEY RING MODULES[:MODULES...] MODE ARGUMENTS...
# MODULES are directories of npm packages, MODE is for the program that stands for a CLI.
set -e
halo=$1 release=$2 key=$3 ring=$4 modules=$5 mode=$6
shift 6
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
# A copy and no layer: the room of the probe puts a layer over /etc, and the kernel stacks no more than two.
cp -a /etc /mnt/etc
mount --bind /mnt/etc /etc
rm -rf /etc/claude-code /etc/codex /etc/github-copilot /etc/gemini-cli /etc/opencode
printf %s "$mode" >/etc/fake-mode
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /opt
mkdir -p /opt/node/lib/node_modules
case $modules in
*:*) mount -t overlay -o "lowerdir=$modules" overlay /opt/node/lib/node_modules ;;
*) mount --bind "$modules" /opt/node/lib/node_modules ;;
esac
"$halo" install --release "$release" --key "$key" --ring "$ring" --as-of 2026-12-01T00:00:00Z >/dev/null
exec "$halo" doctor --as-of 2026-12-01T00:00:00Z "$@"
