package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// processUsage is what a process has used so far.
type processUsage struct {
	// CPU is user and system time together; Memory is the resident set, in bytes.
	CPU    time.Duration
	Memory int64
	// Private is the part of Memory that is no page of a file, such as the binary, which all its processes share.
	Private int64
}

// readUsage reads what a process has used from /proc.
func readUsage(pid int) (processUsage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processUsage{}, err
	}
	// The fields follow the command's name, which stands in brackets and may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime, rss = 11, 12, 21
	var ticks, pages int64
	for _, i := range []int{utime, stime} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return processUsage{}, fmt.Errorf("read /proc/%d/stat: %w", pid, err)
		}
		ticks += n
	}
	if pages, err = strconv.ParseInt(fields[rss], 10, 64); err != nil {
		return processUsage{}, fmt.Errorf("read /proc/%d/stat: %w", pid, err)
	}
	private, err := privatePages(pid)
	if err != nil {
		return processUsage{}, err
	}
	// Linux counts in hundredths of a second on every platform that Go runs on.
	page := int64(os.Getpagesize())
	return processUsage{CPU: time.Duration(ticks) * 10 * time.Millisecond, Memory: pages * page,
		Private: private * page}, nil
}

// privatePages reads how many resident pages of a process are no pages of files.
func privatePages(pid int) (int64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(statm), &size, &resident, &shared); err != nil {
		return 0, fmt.Errorf("read /proc/%d/statm: %w", pid, err)
	}
	return resident - shared, nil
}
