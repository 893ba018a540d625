// plugin_config FILE says what k8s-rdma-shared-dev-plugin makes of its config.json: a JSON object with the reason why it
// would end, or with the resources that it would offer.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/Mellanox/k8s-rdma-shared-dev-plugin/pkg/resources"
	"github.com/Mellanox/k8s-rdma-shared-dev-plugin/pkg/types"
)

type answer struct {
	Error     string             `json:"error"`
	Resources []types.UserConfig `json:"resources"`
}

// As its main() does, up to where it looks for devices.
func ask(file string) answer {
	manager := resources.NewResourceManager(file, false)
	if err := manager.ReadConfig(); err != nil {
		return answer{Error: err.Error()}
	}
	if err := manager.ValidateConfigs(); err != nil {
		return answer{Error: err.Error()}
	}
	// The manager keeps what it read to itself. A key that its types do not know would be passed over in silence.
	text, err := os.Open(file)
	if err != nil {
		return answer{Error: err.Error()}
	}
	defer text.Close()
	var list types.UserConfigList
	decoder := json.NewDecoder(text)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Resources: list.ConfigList}
}

func main() {
	stdout := os.Stdout
	os.Stdout = os.Stderr // the plugin's packages print there
	text, err := json.Marshal(ask(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(stdout, string(text))
}
