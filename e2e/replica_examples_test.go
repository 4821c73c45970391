package e2e

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"mcpx/config"
)

// replicaExample is what the examples of several replicas have in common.
type replicaExample struct {
	config string // text
	env    []string
	args   []string
	stores []string // names under which the store can be reached
	grace  time.Duration
}

// TestReplicaExamples: the files in examples/replicas are valid and fit together.
func TestReplicaExamples(t *testing.T) {
	t.Parallel()
	for name, example := range map[string]replicaExample{"compose": composeExample(t), "kubernetes": kubernetesExample(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := map[string]bool{}
			c, err := config.Parse("mcpx.json", []byte(example.config), func(name string) (string, bool) {
				asked[name] = true
				return "bGl0ZXJhbGxpdGVyYWxsaXRlcmFsbGl0ZXJhbGxpdGU=", slices.Contains(example.env, name)
			})
			if err != nil {
				t.Fatal(err)
			}
			if !asked["MCPX_SESSION_KEY"] || !asked["MCPX_STORE_PASSWORD"] || !slices.Contains(example.env, "MCPX_TOKEN") {
				t.Errorf("the config uses %v, the environment has %q", asked, example.env)
			}
			if store, err := url.Parse(c.Server.Store); err != nil || !slices.Contains(example.stores, store.Hostname()) {
				t.Errorf("the config has the store %q, want one of %q", store.Hostname(), example.stores)
			}
			if least := c.Server.StopDelay + stopTime; example.grace <= least {
				t.Errorf("mcpx has %s to stop, and needs %s", example.grace, least)
			}
			if got := strings.Join(example.args, " "); !strings.HasPrefix(got, "/etc/mcpx/config.json --host ") {
				t.Errorf("mcpx runs with %q", got)
			}
		})
	}
}

// composeExample reads the compose file.
func composeExample(t *testing.T) replicaExample {
	t.Helper()
	file := documents[struct {
		Services map[string]struct {
			Image, Build string
			Command      []string
			Environment  map[string]string
			Volumes      []string
			Grace        string `yaml:"stop_grace_period"`
			Deploy       struct{ Replicas int }
		}
	}](t, "compose.yaml")[0]
	mcpx := file.Services["mcpx"]
	grace, err := time.ParseDuration(mcpx.Grace)
	if err != nil || mcpx.Deploy.Replicas != 3 || mcpx.Build != "../.." {
		t.Errorf("mcpx is %+v (%v), want three replicas of this repository", mcpx, err)
	}
	e := replicaExample{args: mcpx.Command, grace: grace}
	for name, service := range file.Services {
		if strings.HasPrefix(service.Image, "valkey/") {
			e.stores = append(e.stores, name)
		}
		for _, volume := range service.Volumes {
			path, _, _ := strings.Cut(volume, ":")
			text := readFile(t, filepath.Join("..", "examples", "replicas", path))
			if name == "mcpx" {
				e.config = text
			}
		}
	}
	for name := range mcpx.Environment {
		e.env = append(e.env, name)
	}
	return e
}

// object is a Kubernetes object, as far as the test needs it.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Replicas int
		Selector map[string]any
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []container
			}
		}
	}
}

type container struct {
	Image string
	Args  []string
	Env   []struct {
		Name      string
		ValueFrom struct {
			SecretKeyRef struct{ Key string } `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	Readiness probe `yaml:"readinessProbe"`
	Liveness  probe `yaml:"livenessProbe"`
}

type probe struct {
	HTTPGet struct{ Path string } `yaml:"httpGet"`
}

// kubernetesExample reads the Kubernetes manifests.
func kubernetesExample(t *testing.T) replicaExample {
	t.Helper()
	text := readFile(t, filepath.Join("..", "examples", "replicas", "kubernetes.yaml"))
	var e replicaExample
	for _, o := range documents[object](t, "kubernetes.yaml") {
		pod := o.Spec.Template.Spec
		switch {
		case o.Kind == "ConfigMap":
			e.config = o.Data["config.json"]
		case o.Kind == "Service" && o.Spec.Selector["app"] == "mcpx-store":
			e.stores = append(e.stores, o.Metadata.Name)
		case o.Kind == "Deployment" && o.Metadata.Name == "mcpx":
			c := pod.Containers[0]
			if o.Spec.Replicas != 3 || c.Image != "mcpx" || c.Readiness.HTTPGet.Path != "/health" || c.Liveness.HTTPGet.Path != "/health" {
				t.Errorf("mcpx is %+v", o.Spec)
			}
			e.args, e.grace = c.Args, time.Duration(pod.Grace)*time.Second
			for _, v := range c.Env {
				e.env = append(e.env, v.Name)
			}
		}
		for _, c := range pod.Containers {
			for _, v := range c.Env {
				if key := v.ValueFrom.SecretKeyRef.Key; key != "" && !strings.Contains(text, "--from-literal="+key+"=") {
					t.Errorf("nothing says how to create the secret %s", key)
				}
			}
		}
	}
	return e
}

// documents reads a YAML file of examples/replicas.
func documents[T any](t *testing.T, name string) (all []T) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader([]byte(readFile(t, filepath.Join("..", "examples", "replicas", name)))))
	for {
		var document T
		err := d.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, document)
	}
}
