package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/forbear-go/forbear/tools/release/internal/api"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// record holds what the modules export to the records in the folder api, or writes them.
func record(ctx context.Context, root string, args []string) error {
	update := len(args) == 1 && args[0] == "-update"
	if len(args) > 0 && !update {
		return errors.New("api: want no argument, or -update")
	}
	w, err := workspace.Read(root)
	if err != nil {
		return err
	}
	changes, err := api.Changes(ctx, w)
	if err != nil {
		return err
	}
	for _, c := range changes {
		fmt.Fprint(os.Stderr, c)
		if !update {
			continue
		}
		if err := c.Write(root); err != nil {
			return err
		}
	}
	if len(changes) > 0 && !update {
		return errors.New("what is exported has changed: if that is meant, run make api-update and commit the folder api")
	}
	return nil
}
