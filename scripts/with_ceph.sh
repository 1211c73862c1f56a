#!/usr/bin/env bash
# Run a command with an S3 server of Ceph: a monitor, one OSD on a sparse file, and the gateway, all of them processes
# of this user in a temporary folder. The command gets the server's address and keys from the environment. Needs
# Debian's packages ceph-mon, ceph-osd, radosgw and ceph-common.
#
#     scripts/with_ceph.sh .venv/bin/pytest tests/tenantadmin/lib/objectstore
set -euo pipefail

for program in ceph ceph-mon ceph-osd radosgw radosgw-admin; do
    command -v "$program" >/dev/null || {
        echo "$program is missing. Debian: apt-get install --no-install-recommends ceph-mon ceph-osd radosgw ceph-common" >&2
        exit 1
    }
done

folder=$(mktemp -d -t ceph.XXXXXX)
processes=()
finish() {
    kill "${processes[@]}" 2>/dev/null || true
    wait "${processes[@]}" 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
monitor=$(free_port)
gateway=$(free_port)
fsid=$(cat /proc/sys/kernel/random/uuid)
osd=$(cat /proc/sys/kernel/random/uuid)
mkdir "$folder"/{mon,osd,run}

export CEPH_CONF=$folder/ceph.conf
cat >"$CEPH_CONF" <<CONF
[global]
fsid = $fsid
mon host = [v2:127.0.0.1:$monitor]
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
public addr = 127.0.0.1
keyring = $folder/\$name.keyring
run dir = $folder/run
admin socket = $folder/run/\$name.\$pid.asok
pid file =
log file = $folder/\$name.log
crash dir = $folder/run
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
mon allow pool size one = true
[mon]
mon data = $folder/mon
[osd]
osd data = $folder/osd
osd objectstore = bluestore
osd memory target = 1073741824
bluestore block size = 10737418240
[client]
rgw frontends = beast endpoint=127.0.0.1:$gateway
CONF

start() {
    "$@" -f >"$folder/$1.out" 2>&1 &
    processes+=($!)
}
# Until a command succeeds, a minute at most; then what the servers said.
await() {
    for _ in $(seq 120); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.5
    done
    echo "Ceph did not start: $* fails" >&2
    tail -n 20 "$folder"/*.out "$folder"/*.log >&2
    exit 1
}

ceph-authtool --create-keyring "$folder/mon.a.keyring" --gen-key -n mon. --cap mon 'allow *' >/dev/null
ceph-authtool --create-keyring "$folder/client.admin.keyring" --gen-key -n client.admin \
    --cap mon 'allow *' --cap osd 'allow *' >/dev/null
ceph-authtool "$folder/mon.a.keyring" --import-keyring "$folder/client.admin.keyring" >/dev/null
monmaptool --create --addv a "[v2:127.0.0.1:$monitor]" --fsid "$fsid" "$folder/monmap" >/dev/null
ceph-mon --mkfs -i a --monmap "$folder/monmap" --keyring "$folder/mon.a.keyring"
start ceph-mon -i a
await ceph --connect-timeout 2 mon stat

ceph osd new "$osd" >/dev/null 2>&1
ceph auth get-or-create osd.0 mon 'profile osd' osd 'allow *' -o "$folder/osd.0.keyring"
ceph-osd -i 0 --mkfs --osd-uuid "$osd" >"$folder/mkfs.out" 2>&1
start ceph-osd -i 0
await sh -c 'ceph osd stat | grep -q "1 up"'

ceph auth get-or-create client.rgw mon 'allow rwx' osd 'allow rwx' -o "$folder/client.rgw.keyring"
start radosgw -n client.rgw
radosgw-admin user create --uid test --display-name Test --access-key test --secret-key test-secret >/dev/null 2>&1
await bash -c "exec 3<>/dev/tcp/127.0.0.1/$gateway"

export TEST_S3_ENDPOINT=http://127.0.0.1:$gateway AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test-secret
export AWS_DEFAULT_REGION=us-east-1
"$@"
