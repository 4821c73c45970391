package validate

import (
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpx/internal/schema"
)

// compileSanthosh compiles a schema with santhosh-tekuri/jsonschema, which the tests
// hold mcpx against.
func compileSanthosh(root any, draft schema.Draft) (func(any) bool, error) {
	const here = "mcpx:///input-schema"
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	compiler.DefaultDraft(jsonschema.Draft2020)
	if draft <= schema.Draft7 {
		compiler.DefaultDraft(jsonschema.Draft7)
	}
	if err := compiler.AddResource(here, root); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(here)
	if err != nil {
		return nil, err
	}
	return func(arguments any) bool { return compiled.Validate(arguments) == nil }, nil
}

// nowhere loads nothing: by default the library reads files.
type nowhere struct{}

func (nowhere) Load(string) (any, error) { return nil, errClosed }
