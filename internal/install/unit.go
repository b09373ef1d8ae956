package install

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

// Unit has the permissions of the systemd unit that differ between hubs.
type Unit struct {
	// DataDir is the hub's data folder. OwnFolders are other folders that only the hub uses. Writable are shared folders
	// that the hub writes to.
	DataDir    string
	OwnFolders []string
	Writable   []string
	// logs are the folders of Writable that systemd creates below /var/log for the hub's user.
	logs []string
	// Port of the hub's API.
	Port int
}

// unitTemplate allows the hub to read the system, to write its own folders and to use the network, nothing else.
var unitTemplate = template.Must(template.New("unit").Parse(`# Written by argosy install, which replaces it: change it with "systemctl edit argosy".
[Unit]
Description=Argosy hub: many Kubernetes clusters as one fleet
After=network-online.target
Wants=network-online.target
# Restart the hub without a limit while its etcd or disk is unavailable.
StartLimitIntervalSec=0

[Service]
# The hub notifies systemd when it is ready; it replays the store first, which may take minutes.
Type=notify
ExecStart={{.Binary}} up --config {{.Config}}
User={{.User}}
Group={{.User}}
Restart=on-failure
RestartSec=5
TimeoutStartSec=10min
TimeoutStopSec=90

LimitNOFILE=1048576
TasksMax=8192
# The memory of the hub contains keys.
LimitCORE=0
OOMScoreAdjust=-500

UMask=0077
{{- if .State}}
StateDirectory={{.State}}
StateDirectoryMode=0700
{{- end}}
{{- with .Logs}}
LogsDirectory={{.}}
LogsDirectoryMode=0700
{{- end}}
{{- range .Writable}}
ReadWritePaths={{.}}
{{- end}}
ProtectSystem=strict
ProtectHome={{if .Home}}no{{else}}yes{{end}}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
NoNewPrivileges=yes
{{- if .LowPort}}
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
AmbientCapabilities=CAP_NET_BIND_SERVICE
{{- else}}
CapabilityBoundingSet=
AmbientCapabilities=
{{- end}}
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
# The hub reads the addresses of this machine with Netlink, for its serving certificate.
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
# Rotated log files get the owner of the old file, which is the hub.
SystemCallFilter=@chown
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`))

// text renders the unit of a hub that runs as user.
func (u Unit) text(user string) []byte {
	writable := slices.Concat(u.OwnFolders, slices.DeleteFunc(slices.Clone(u.Writable), func(dir string) bool {
		return slices.Contains(u.logs, dir)
	}))
	// systemd creates the folders below /var/lib that a unit names, with the right owner, and makes them writable.
	state, inState := strings.CutPrefix(u.DataDir, "/var/lib/")
	if !inState {
		state = ""
		writable = append([]string{u.DataDir}, writable...)
	}
	var logs []string
	for _, dir := range u.logs {
		logs = append(logs, escape(strings.TrimPrefix(dir, logDir+"/")))
	}
	var all []string
	for _, dir := range writable {
		all = append(all, escape(dir))
	}
	var out bytes.Buffer
	err := unitTemplate.Execute(&out, map[string]any{
		"Binary": BinaryPath, "Config": ConfigPath, "User": user, "State": escape(state), "Writable": all,
		"Logs":    strings.Join(logs, " "),
		"Home":    u.inHome(),
		"LowPort": u.Port > 0 && u.Port < 1024,
	})
	if err != nil {
		panic(err) // the template names a field that is not there
	}
	return out.Bytes()
}

// logDir is the parent of folders that systemd creates for logs of services.
const logDir = "/var/log"

// within reports whether path equals or is below one of the folders.
func within(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// homes are hidden from the hub unless it writes there. Temporary folders are always hidden.
var (
	homes     = []string{"/home", "/root", "/run/user"}
	temporary = []string{"/tmp", "/var/tmp"}
)

// inHome reports whether the hub writes into a home folder.
func (u Unit) inHome() bool {
	return slices.ContainsFunc(slices.Concat([]string{u.DataDir}, u.OwnFolders, u.Writable), func(dir string) bool {
		return within(dir, homes...)
	})
}

// escape quotes a path for a unit file, where % begins a specifier and a space separates words.
func escape(path string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	if strings.ContainsAny(path, " \t\"'\\") {
		return fmt.Sprintf("%q", path)
	}
	return path
}

// sysusers renders the file for systemd-sysusers, which creates the user here or at the first boot of an image.
func sysusers(user, dataDir string) []byte {
	return fmt.Appendf(nil, "# Written by argosy install.\nu %s - \"Argosy hub\" %s\n", user, dataDir)
}
