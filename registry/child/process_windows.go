package child

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tree is a child in a job object: the system ends all of the job when its last
// handle is closed, also when mcpx is killed.
type tree struct {
	job windows.Handle
}

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// newTree returns an empty tree if a step fails. The child then still ends when its
// stdin is closed.
func newTree(p *os.Process, _ string) tree {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return tree{}
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		var refused error
		err = p.WithHandle(func(handle uintptr) { refused = windows.AssignProcessToJobObject(job, windows.Handle(handle)) })
		err = errors.Join(err, refused)
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return tree{}
	}
	return tree{job: job}
}

func (t *tree) remember() {}

// alive reports whether the job has a process.
func (t *tree) alive() bool {
	var info struct {
		TotalUserTime, TotalKernelTime, ThisPeriodTotalUserTime, ThisPeriodTotalKernelTime int64
		TotalPageFaultCount, TotalProcesses, ActiveProcesses, TotalTerminatedProcesses     uint32
	}
	const basicAccounting = 1
	err := windows.QueryInformationJobObject(t.job, basicAccounting, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	return err == nil && info.ActiveProcesses > 0
}

// terminate does nothing: Windows has no polite signal for a process without a
// console. A closed stdin was the polite way.
func (t *tree) terminate() {}

func (t *tree) kill() {
	_ = windows.TerminateJobObject(t.job, 1)
	_ = windows.CloseHandle(t.job)
}
