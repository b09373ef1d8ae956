package install

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

// Unit is what the systemd unit must let the hub do beyond what every hub does.
type Unit struct {
	// DataDir is the hub's data folder, OwnFolders others that are the hub's alone. Writable are folders in which it
	// writes beside others.
	DataDir    string
	OwnFolders []string
	Writable   []string
	// Reads are files that the hub reads and others write.
	Reads []string
	// logs are those of Writable that systemd makes below /var/log, with the hub as their owner.
	logs []string
	// Port is the one that the hub serves on.
	Port int
}

// unitTemplate has the hub's rights: to read the system, to write its own folders, to speak to networks, and no more.
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

// text is the unit, as a hub of user.
func (u Unit) text(user string) []byte {
	writable := slices.Concat(u.OwnFolders, slices.DeleteFunc(slices.Clone(u.Writable), func(dir string) bool {
		return slices.Contains(u.logs, dir)
	}))
	// systemd makes the folders below /var/lib that a unit names, with the right owner, and lets it write there.
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

// logDir is where systemd makes folders for the logs of services.
const logDir = "/var/log"

// within reports whether path is one of the folders, or in one.
func within(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// homes are hidden from the hub unless it writes there, temporary ones always.
var (
	homes     = []string{"/home", "/root", "/run/user"}
	temporary = []string{"/tmp", "/var/tmp"}
)

// inHome reports whether the hub writes into somebody's home.
func (u Unit) inHome() bool {
	return slices.ContainsFunc(slices.Concat([]string{u.DataDir}, u.OwnFolders, u.Writable), func(dir string) bool {
		return within(dir, homes...)
	})
}

// escape writes a path as a unit has it: % begins a specifier, and spaces part words.
func escape(path string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	if strings.ContainsAny(path, " \t\"'\\") {
		return fmt.Sprintf("%q", path)
	}
	return path
}

// sysusers is the user for systemd-sysusers, which makes it here, and at the first boot of an image that is installed
// into.
func sysusers(user, dataDir string) []byte {
	return fmt.Appendf(nil, "# Written by argosy install.\nu %s - \"Argosy hub\" %s\n", user, dataDir)
}
